/** Readers that stall, disconnect or are overtaken by pruning, and the cached files. */
import assert from 'node:assert/strict';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { bodyOf, json, manyPeople, PEOPLE, startReading, WORKFLOWS } from '../support/records/reading.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const { service, publish, prune, open, get, untilKept, kept, openFiles } = await startReading();

/** Larger than the buffers of two sockets. */
const HEAVY = manyPeople(2_400, 'x'.repeat(5_000));

test('a reader that stalls keeps its version while newer ones are published and pruned', async () => {
  await publish(HEAVY, 'people');
  const stalled = await open(PEOPLE, {}, { stalls: true });
  const late = await untilKept(PEOPLE);
  await publish(manyPeople(3), 'people');
  await prune('people');
  const body = await bodyOf(stalled);
  assert.equal(body.length, late);
  assert.ok(body.equals(Buffer.from(json(HEAVY))));
  assert.equal((await get(PEOPLE)).body.toString(), json(manyPeople(3)));
});

test('readers that disconnect leave no file open, and the file stays cached', async () => {
  await publish(HEAVY, 'people');
  const leaving = await Promise.all([open(PEOPLE), open(PEOPLE), open(PEOPLE)]);
  for (const response of leaving) response.destroy();
  assert.equal(await untilKept(PEOPLE), json(HEAVY).length);
  const again = await open(PEOPLE);
  again.destroy();
  await until('all files are closed', async () => (await openFiles()).length === 0);
  assert.ok((await get(PEOPLE)).body.equals(Buffer.from(json(HEAVY))));
});

test('the directory of the cached files may be deleted at any time', async () => {
  const directory = join(service.directory, 'data/representations');
  const expected = Buffer.from(json(HEAVY));
  await get(PEOPLE);
  await untilKept(PEOPLE);
  const fromFile = await open(PEOPLE);
  await rm(directory, { recursive: true, maxRetries: 10 });
  assert.ok((await bodyOf(fromFile)).equals(expected));
  const beingMade = await open(PEOPLE);
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  assert.ok((await bodyOf(beingMade)).equals(expected));
  await until('the body is cached', async () => {
    // The first read may still follow the build whose file was deleted, which is not cached.
    assert.ok((await get(PEOPLE)).body.equals(expected));
    return (await get(PEOPLE, {}, { method: 'HEAD' })).headers['content-length'] !== undefined;
  });
  await until('all files are closed', async () => (await openFiles()).length === 0);
});

test('the first read of a version finds a complete file if the previous version was read', async () => {
  await publish(HEAVY, 'people');
  await get(PEOPLE);
  await untilKept(PEOPLE);
  const next = manyPeople(2_400, 'y'.repeat(5_000));
  await publish(next, 'people');
  assert.equal(await untilKept(PEOPLE), json(next).length);
  assert.ok((await get(PEOPLE)).body.equals(Buffer.from(json(next))));
});

test('the total size of the files is limited, and the least recently read are evicted first', async (t) => {
  const small = await startService({
    workflows: WORKFLOWS,
    settings: { FLOWHOOK_REPRESENTATION_CACHE_MB: '1' },
  });
  t.after(() => small.stop());
  const at = { at: small };
  await publish(manyPeople(4_000), 'people', small);
  for (const format of ['json', 'ndjson', 'csv', 'json']) {
    await get(`${PEOPLE}?format=${format}`, {}, at);
    await untilKept(`${PEOPLE}?format=${format}`, {}, small);
    const directory = join(small.directory, 'data/representations');
    const sizes = await Promise.all(
      (await kept(small)).map(async (name) => (await stat(join(directory, name))).size),
    );
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= 1_048_576, `${sizes}`);
    assert.ok((await kept(small)).some((name) => name.endsWith(`-${format}-identity`)));
  }
  await publish(HEAVY, 'people', small);
  for (const time of ['first', 'again']) {
    const readers = await Promise.all([open(PEOPLE, {}, at), open(PEOPLE, {}, at), open(PEOPLE, {}, at)]);
    readers[1]?.destroy();
    for (const reader of [readers[0], readers[2]]) {
      assert.ok((await bodyOf(reader as IncomingMessage)).equals(Buffer.from(json(HEAVY))), time);
    }
  }
  const files = (await kept(small)).filter((name) => !name.endsWith('.making'));
  for (const name of files) {
    const text = await readFile(join(small.directory, 'data/representations', name));
    assert.ok(text.length <= 1_048_576);
  }
});

test('without files, a reader overtaken by pruning is aborted, and never ends normally', async (t) => {
  const none = await startService({
    workflows: WORKFLOWS,
    settings: { FLOWHOOK_REPRESENTATION_CACHE_MB: '0' },
  });
  t.after(() => none.stop());
  await publish(HEAVY, 'people', none);
  assert.ok((await get(PEOPLE, {}, { at: none })).body.equals(Buffer.from(json(HEAVY))));
  const stalled = await open(PEOPLE, {}, { at: none, stalls: true });
  await publish(manyPeople(3), 'people', none);
  await prune('people', none);
  await assert.rejects(bodyOf(stalled), /aborted|ECONNRESET/);
  assert.deepEqual(await kept(none), []);
});

test('files of an earlier process are deleted at startup', async (t) => {
  const first = await startService({ workflows: WORKFLOWS });
  const directory = join(first.directory, 'data/representations');
  await publish(manyPeople(4_000), 'people', first);
  await get(PEOPLE, {}, { at: first });
  await untilKept(PEOPLE, {}, first);
  await writeFile(join(directory, 'x.making'), 'left');
  const second = async () => {
    const again = await startService({ directory: first.directory });
    t.after(() => rm(first.directory, { recursive: true, force: true }));
    assert.deepEqual(await kept(again), []);
    await again.stop();
  };
  t.after(second);
  await first.stop();
});
