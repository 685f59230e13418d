/** The cache of bodies in files, with a real store and directory. */
import assert from 'node:assert/strict';
import { writeSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentLogger } from '../observe/log.ts';
import { allSteps, makeWorkflow, publishRun } from '../store/conformance/setup.ts';
import { openStore } from '../store/open.ts';
import type { OpenBody } from './body-cache.ts';
import { BodyCache } from './body-cache.ts';
import { BodyWriter } from './body-writer.ts';
import { type Body, openVersion } from './read.ts';

interface Change {
  writer?: Pick<BodyWriter, 'write' | 'close'>;
  maxBytes?: number;
}

async function setUp(t: TestContext, { writer, maxBytes = 1_000_000 }: Change = {}) {
  const root = await mkdtemp(join(tmpdir(), 'flowhook-bodies-'));
  const databaseUrl = `sqlite:${join(root, 'flowhook.db')}`;
  const store = await openStore(databaseUrl, {
    publicUrl: () => '',
    log: silentLogger,
    synchronous: 'OFF',
  });
  const directory = join(root, 'bodies');
  await mkdir(directory);
  await writeFile(join(directory, 'left'), 'by an earlier process');
  const bodies = new BodyCache({
    store,
    writer: writer ?? new BodyWriter({ databaseUrl, log: silentLogger }),
    directory,
    maxBytes,
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
  const of: Body = { place, version, format: 'json', encoding: 'identity' };
  const make = () => bodies.open(of);
  const untilMade = async () => {
    while (bodies.bytesOf(of) === undefined) await new Promise(setImmediate);
  };
  const files = () => readdir(directory).catch(() => []);
  return { store, directory, bodies, place, of, make, untilMade, files };
}

async function all(body: OpenBody | undefined): Promise<string> {
  assert.ok(body);
  const memory = Buffer.alloc(16);
  let text = '';
  try {
    for (let bytes = await body.read(memory); bytes > 0; bytes = await body.read(memory))
      text += memory.toString('utf8', 0, bytes);
    return text;
  } finally {
    body.close();
  }
}

const BODY = '[{"id":"a","name":"Ada"},{"id":"b","name":"Grace"}]';

/** A writer that writes as many bytes of the body as the test says, until it completes or aborts the body. */
function slowWriter() {
  const steps: { to: number; ended?: 'complete' | 'not_written' }[] = [];
  let wake = () => {};
  const tell = (to: number, ended?: 'complete' | 'not_written') => {
    steps.push(ended === undefined ? { to } : { to, ended });
    wake();
  };
  const write: BodyWriter['write'] = async ({ fd, onLength, signal }) => {
    let length = 0;
    for (;;) {
      const step = steps.shift();
      if (step !== undefined) {
        length += writeSync(fd, BODY.slice(length, step.to), length);
        onLength(length);
        if (step.ended !== undefined) return step.ended;
        continue;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      if (signal.aborted) return 'not_written';
    }
  };
  return { writer: { write, close: async () => {} }, tell };
}

test('opens a complete body, and builds it again if its file is missing', async (t) => {
  const { directory, bodies, of, make, untilMade, files } = await setUp(t);
  assert.deepEqual(await files(), [], 'files of an earlier process are deleted');
  assert.equal(bodies.bytesOf(of), undefined);
  assert.equal(await all(await make()), BODY);
  await untilMade();
  const found = await make();
  assert.equal(found?.bytes, BODY.length);
  found.seek({ start: 1, end: 5 });
  assert.equal(await all(found), BODY.slice(1, 5));
  assert.equal((await files()).length, 1);
  await rm(directory, { recursive: true });
  assert.equal(await all(await make()), BODY);
  await untilMade();
  assert.equal((await files()).length, 1);
});

test('early and late readers follow the file, and it is completed after they have left', async (t) => {
  const { writer, tell } = slowWriter();
  const { make, untilMade } = await setUp(t, { writer });
  tell(10);
  const [early, leaving] = [await make(), await make()];
  leaving?.close();
  assert.equal(early?.bytes, undefined, 'the length is not known yet');
  const text = all(early);
  tell(20);
  const late = await make();
  tell(BODY.length, 'complete');
  assert.deepEqual([await text, await all(late)], [BODY, BODY]);
  await untilMade();
});

test('builds no body that is larger than the cache, and pauses after a file could not be written', async (t) => {
  const { writer, tell } = slowWriter();
  const { make, bodies, files } = await setUp(t, { writer });
  tell(0, 'not_written');
  assert.equal(await make(), undefined);
  tell(BODY.length, 'complete');
  assert.equal(await make(), undefined);
  assert.equal(bodies.size.bytes, 0);
  while ((await files()).length > 0) await new Promise(setImmediate);
  const small = await setUp(t, { maxBytes: BODY.length - 1 });
  assert.equal(await small.make(), undefined);
});

test('a reader is aborted if the rest cannot be written', async (t) => {
  const { writer, tell } = slowWriter();
  const { make, bodies, of } = await setUp(t, { writer });
  tell(10);
  const reading = await make();
  const broken = assert.rejects(all(reading), /could not be written/);
  tell(20, 'not_written');
  await broken;
  assert.equal(reading?.broken.aborted, true);
  assert.equal(bodies.bytesOf(of), undefined);
});

test('a body that outgrows the cache with its last bytes is discarded without blocking anything', async (t) => {
  const { writer, tell } = slowWriter();
  const { bodies, place, of, files } = await setUp(t, { writer, maxBytes: BODY.length - 1 });
  // The body turns out to be longer than expected.
  const longer: Body = { ...of, version: { ...of.version, bytes: 1 }, format: 'csv' };
  tell(10);
  const reading = await bodies.open(longer);
  const broken = assert.rejects(all(reading), /exceed the size limit of the cache/);
  tell(BODY.length, 'complete');
  await broken;
  await bodies.forget(place);
  assert.deepEqual(await files(), []);
  assert.equal(bodies.size.bytes, 0);
});

test('a body without room beside the ones being built is not cached, and aborts no reader', async (t) => {
  const { writer, tell } = slowWriter();
  const { bodies, of, make, untilMade } = await setUp(t, { writer, maxBytes: BODY.length + 20 });
  tell(30);
  const text = all(await make());
  const ndjson: Body = { ...of, format: 'ndjson' };
  assert.equal(await bodies.open(ndjson), undefined);
  tell(BODY.length, 'complete');
  assert.equal(await text, BODY);
  await untilMade();
  // Complete bodies are evicted.
  tell(BODY.length, 'complete');
  assert.equal(await all(await bodies.open(ndjson)), BODY);
  assert.equal(bodies.bytesOf(of), undefined);
});

test('a tick removes the bodies of pruned versions only', async (t) => {
  const { store, bodies, place, make, untilMade, files } = await setUp(t);
  await all(await make());
  await untilMade();
  await publishRun(store, place, { a: 'Ada L.' });
  await bodies.tick();
  assert.equal((await files()).length, 1);
  const retention = { keepVersions: 1, keepMs: 0, graceMs: 0, limit: 100 };
  await allSteps(store.records.prune, { ...place, ...retention });
  await bodies.tick();
  assert.deepEqual(await files(), []);
});

test('forgetting a workflow removes its files and aborts their readers', async (t) => {
  const { writer, tell } = slowWriter();
  const { bodies, place, of, make, untilMade, files } = await setUp(t, { writer });
  tell(BODY.length, 'complete');
  const reading = await make();
  await untilMade();
  tell(10);
  const another = await bodies.open({ ...of, format: 'ndjson' });
  await bodies.forget({ ...place, workflowId: 'other' });
  assert.equal((await files()).length, 2);
  const broken = Promise.all([reading, another].map((one) => assert.rejects(all(one), /erased/)));
  await bodies.forget(place);
  await broken;
  assert.deepEqual(await files(), []);
  assert.equal(bodies.size.bytes, 0);
});

test('a body that is removed while it is being opened is rebuilt', async (t) => {
  const { bodies, place, of, make, untilMade } = await setUp(t);
  await all(await make());
  await untilMade();
  const [found] = await Promise.all([make(), bodies.forget(place)]);
  assert.equal(await all(found), BODY);
  await untilMade();
  assert.equal(bodies.bytesOf(of), BODY.length);
});

test('a body is built ahead of time only if that of the previous version was read', async (t) => {
  const { store, bodies, place, of, make, untilMade } = await setUp(t);
  const next = async (name: string) => {
    await publishRun(store, place, { a: name });
    return { ...of, version: await openVersion(store, place) };
  };
  await all(await make());
  await untilMade();
  assert.equal(await bodies.buildAhead(place), false);
  const second = await next('Ada L.');
  assert.equal(await bodies.buildAhead({ ...place, workflowId: 'other' }), false);
  assert.equal(await bodies.buildAhead(place), true);
  while (bodies.bytesOf(second) === undefined) await new Promise(setImmediate);
  // Nobody reads this body.
  await next('A. Lovelace');
  assert.equal(await bodies.buildAhead(place), false);
  assert.equal(await all(await bodies.open(second)), '[{"id":"a","name":"Ada L."}]');
  assert.equal(await bodies.buildAhead(place), true);
});

test('builds nothing after `stop`', async (t) => {
  const { bodies, make } = await setUp(t);
  await bodies.stop();
  assert.equal(await make(), undefined);
});

test('builds again a second after the process had too many open files', async (t) => {
  let calls = 0;
  const write = async () => {
    calls += 1;
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
  };
  const { make } = await setUp(t, { writer: { write, close: async () => {} } });
  assert.equal(await make(), undefined);
  assert.equal(await make(), undefined);
  assert.equal(calls, 1);
  const now = performance.now();
  t.mock.method(performance, 'now', () => now + 1_001);
  assert.equal(await make(), undefined);
  assert.equal(calls, 2);
});
