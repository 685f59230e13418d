/** Writes bodies to files with the real thread. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { silentLogger } from '../observe/log.ts';
import { openEmptyStore } from '../store/conformance/empty-store.ts';
import { makeWorkflow, publishRun } from '../store/conformance/setup.ts';
import type { FromBodies, ToBodies } from './body-thread.ts';
import { BodyWriter, openThread } from './body-writer.ts';
import { type Body, openVersion, VersionGoneError } from './read.ts';

const BODY = '[{"id":"a","name":"Ada"},{"id":"b","name":"Grace"}]';

async function setUp(t: TestContext) {
  const { store, databaseUrl, directory } = await openEmptyStore(t);
  const threads: ReturnType<typeof openThread>[] = [];
  const writer = new BodyWriter({
    databaseUrl,
    log: silentLogger,
    open: () => {
      const thread = openThread(databaseUrl);
      threads.push(thread);
      return thread;
    },
  });
  const path = join(directory, 'body');
  const file = await open(path, 'w+');
  t.after(async () => {
    await file.close();
    await writer.close();
    await writer.close();
  });
  const place = await makeWorkflow(store);
  await publishRun(store, place, { a: 'Ada', b: 'Grace' });
  const body: Body = {
    place,
    version: await openVersion(store, place),
    format: 'json',
    encoding: 'identity',
  };
  const write = (change: Partial<Parameters<BodyWriter['write']>[0]> = {}) =>
    writer.write({
      fd: file.fd,
      body,
      onLength: () => {},
      signal: new AbortController().signal,
      ...change,
    });
  return { store, place, body, path, threads, writer, write };
}

test('writes a body and reports the progress', async (t) => {
  const { path, write } = await setUp(t);
  const lengths: number[] = [];
  assert.equal(await write({ onLength: (length) => lengths.push(length) }), 'complete');
  assert.equal(lengths.at(-1), BODY.length);
  assert.equal(await readFile(path, 'utf8'), BODY);
});

test('writes several bodies at a time, compressed if requested', async (t) => {
  const { body, path, threads, write } = await setUp(t);
  const other = await open(`${path}.gz`, 'w+');
  t.after(() => other.close());
  const both = [write(), write({ fd: other.fd, body: { ...body, encoding: 'gzip' } })];
  assert.deepEqual(await Promise.all(both), ['complete', 'complete']);
  assert.equal(gunzipSync(await readFile(`${path}.gz`)).toString(), BODY);
  assert.equal(threads.length, 1);
});

test('stops when aborted, and when writing fails', async (t) => {
  const { path, write } = await setUp(t);
  assert.equal(await write({ signal: AbortSignal.abort() }), 'not_written');
  const readOnly = await open(path, 'r');
  t.after(() => readOnly.close());
  assert.equal(await write({ fd: readOnly.fd }), 'not_written');
});

test('reports that a version is no longer complete', async (t) => {
  const { body, write } = await setUp(t);
  const erased = { ...body, version: { ...body.version, erasures: 7 } };
  await assert.rejects(write({ body: erased }), VersionGoneError);
});

test('if the thread dies, its bodies fail, and the next body starts another thread', async (t) => {
  const { threads, write } = await setUp(t);
  const lost = write();
  while (threads.length === 0) await new Promise(setImmediate);
  await threads[0]?.terminate();
  assert.match(await lost, /not_written|complete/);
  assert.equal(await write(), 'complete');
  assert.equal(threads.length, 2);
});

test('a team with many bodies does not block other teams', async () => {
  const started: string[] = [];
  // The thread's end of the messages: completes a body when the test says so.
  const thread = Object.assign(new EventEmitter(), {
    postMessage(message: ToBodies) {
      if ('begin' in message) started.push(message.begin.place.teamId);
      if ('close' in message) thread.emit('exit');
    },
  });
  const end = (body: number) => thread.emit('message', { body, ended: 'complete' } satisfies FromBodies);
  const writer = new BodyWriter({
    databaseUrl: '',
    log: silentLogger,
    open: () => thread as unknown as Worker,
  });
  const stop = new AbortController();
  const write = (teamId: string, { signal } = new AbortController()) => {
    const place = { teamId, workflowId: 'w' };
    const body = { place, format: 'json', encoding: 'identity' } as Body;
    return writer.write({ fd: 0, body, onLength: () => {}, signal });
  };
  const turn = () => new Promise(setImmediate);
  const all = Array.from({ length: 8 }, () => write('flood'));
  const ended = write('flood', stop);
  await turn();
  assert.deepEqual(started, ['flood', 'flood', 'flood'], 'one place is reserved for other teams');
  all.push(write('small'));
  await turn();
  assert.deepEqual(started.splice(3), ['small'], 'the write starts immediately');
  all.push(write('third'));
  await turn();
  assert.deepEqual(started.splice(3), [], 'every place is taken');
  end(1);
  await turn();
  assert.deepEqual(started.splice(3), ['third'], 'the team gets the first free place');
  stop.abort();
  assert.equal(await ended, 'not_written', 'an abort also ends the wait');
  for (let body = 2; body <= all.length; body++) {
    end(body);
    await turn();
  }
  assert.deepEqual(new Set(await Promise.all(all)), new Set(['complete']));
  await writer.close();
});
