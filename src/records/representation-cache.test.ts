/** Kept bodies: when they are made, and when they go. On a real store and a real directory. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { makeWorkflow, publishRun } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { BodyReader } from './body-reader.ts';
import { BodyWriter } from './body-writer.ts';
import { openVersion, type Representation } from './read.ts';
import { RepresentationCache } from './representation-cache.ts';

async function setUp(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-representations-'));
  const databaseUrl = `sqlite:${join(root, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const directory = join(root, 'representations');
  await mkdir(directory);
  await writeFile(join(directory, 'left'), 'by an earlier process');
  const writer = new BodyWriter({ databaseUrl, log: silentLogger });
  const bodies = new RepresentationCache({
    store,
    writer,
    directory,
    maxBytes: 1_000_000,
    log: silentLogger,
  });
  await bodies.start();
  await bodies.start();
  t.after(async () => {
    await bodies.stop();
    await store.close();
    await rm(root, { recursive: true });
  });
  const place = await makeWorkflow(store);
  await publishRun(store, place, { a: 'Ada', b: 'Grace' });
  const version = await openVersion(store, place);
  const of: Representation = { place, version, format: 'json', encoding: 'identity' };
  const make = () => bodies.build(of);
  const untilMade = async () => {
    while (bodies.bytesOf(of) === undefined) await new Promise(setImmediate);
  };
  const files = () => readdir(directory).catch(() => []);
  return { store, directory, bodies, place, of, make, untilMade, files };
}

async function all(reader: BodyReader | undefined): Promise<string> {
  assert.ok(reader);
  const memory = Buffer.alloc(16);
  let text = '';
  try {
    for (let bytes = await reader.read(memory); bytes > 0; bytes = await reader.read(memory))
      text += memory.toString('utf8', 0, bytes);
    return text;
  } finally {
    reader.close();
  }
}

const BODY = '[{"id":"a","name":"Ada"},{"id":"b","name":"Grace"}]';

test('finds a body once it is built, and builds it again when its file is gone', async (t) => {
  const { directory, bodies, of, make, untilMade, files } = await setUp(t);
  assert.deepEqual(await files(), [], 'what an earlier process left is removed');
  assert.equal(await bodies.find(of), undefined);
  assert.equal(await all(make()), BODY);
  await untilMade();
  const found = await bodies.find(of);
  assert.equal(found?.bytes, BODY.length);
  assert.equal(await all(found?.part(1, 5)), BODY.slice(1, 5));
  assert.equal((await files()).length, 1);
  await rm(directory, { recursive: true });
  assert.equal(await bodies.find(of), undefined);
  assert.equal(await all(make()), BODY);
  await untilMade();
  assert.equal((await files()).length, 1);
});

test('a tick removes the bodies of pruned versions only', async (t) => {
  const { store, bodies, place, make, untilMade, files } = await setUp(t);
  await all(make());
  await untilMade();
  await publishRun(store, place, { a: 'Ada L.' });
  await bodies.tick();
  assert.equal((await files()).length, 1);
  const retention = { keepVersions: 1, keepMs: 0, graceMs: 0, limit: 100 };
  while (!(await store.records.prune({ ...place, ...retention })).done);
  await bodies.tick();
  assert.deepEqual(await files(), []);
});

test('forgetting a workflow removes its files and breaks off their readers', async (t) => {
  const { bodies, place, of, make, untilMade, files } = await setUp(t);
  await all(make());
  await untilMade();
  const reading = (await bodies.find(of))?.part(0, BODY.length);
  const another = bodies.build({ ...of, format: 'ndjson' });
  assert.ok(another);
  await bodies.forget({ ...place, workflowId: 'other' });
  assert.equal((await files()).filter((name) => !name.endsWith('.making')).length, 1);
  const broken = assert.rejects(all(reading), /erased/);
  const forgotten = bodies.forget(place);
  await broken;
  await assert.rejects(all(another), /erased/);
  await forgotten;
  assert.deepEqual(await files(), []);
});

test('a body that enters the cache while its workflow is forgotten is removed as well', async (t) => {
  const { store, bodies, place, of, make, files } = await setUp(t);
  const looking = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  // The look that keeping begins with, answered late.
  t.mock.method(store.records, 'version', async () => {
    looking.resolve();
    await answer.promise;
    return of.version;
  });
  const reader = make();
  await looking.promise;
  const forgotten = bodies.forget(place);
  answer.resolve();
  await forgotten;
  reader?.close();
  assert.equal(bodies.bytesOf(of), undefined);
  assert.deepEqual(await files(), []);
  assert.equal(bodies.size.bytes, 0);
});

test('a body that is removed while it is being opened is not found', async (t) => {
  const { bodies, place, of, make, untilMade } = await setUp(t);
  await all(make());
  await untilMade();
  const [found] = await Promise.all([bodies.find(of), bodies.forget(place)]);
  assert.equal(found, undefined);
  assert.equal(bodies.bytesOf(of), undefined);
});

test('the body of a version is built ahead when that of the previous version was read, once for each read', async (t) => {
  const { store, bodies, place, of, make, untilMade } = await setUp(t);
  const next = async (name: string) => {
    await publishRun(store, place, { a: name });
    return { ...of, version: await openVersion(store, place) };
  };
  await all(make());
  await untilMade();
  assert.equal(await bodies.buildAhead(place), false);
  const second = await next('Ada L.');
  assert.equal(await bodies.buildAhead({ ...place, workflowId: 'other' }), false);
  assert.equal(await bodies.buildAhead(place), true);
  while (bodies.bytesOf(second) === undefined) await new Promise(setImmediate);
  // Nobody reads it.
  await next('A. Lovelace');
  assert.equal(await bodies.buildAhead(place), false);
  const found = await bodies.find(second);
  assert.equal(await all(found?.part(0, found.bytes)), '[{"id":"a","name":"Ada L."}]');
  assert.equal(await bodies.buildAhead(place), true);
});

test('builds nothing once it is stopped', async (t) => {
  const { bodies, make } = await setUp(t);
  await bodies.stop();
  assert.equal(make(), undefined);
});
