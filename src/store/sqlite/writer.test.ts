/** The writer thread: batches, bounds, its death. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Problem } from '../../model/error.ts';
import { silentLogger } from '../../observe/log.ts';
import { migrate } from './migrate.ts';
import { startWriter, Writer, type WriterOptions } from './writer.ts';

const options: WriterOptions = {
  path: '/nowhere/flowhook.db',
  synchronous: 'OFF',
  clock: () => 1,
  publicUrl: () => 'http://localhost',
  log: silentLogger,
  onTouched: () => {},
};
const problem = (code: string) => (error: unknown) => error instanceof Problem && error.code === code;

test('rejects when the thread cannot open the database', async () => {
  await assert.rejects(startWriter(options), /unable to open database file/);
});

test('refuses more than may wait, and takes operations again afterwards', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'flowhook-writer-'));
  const path = join(directory, 'flowhook.db');
  migrate({ path, log: silentLogger, now: 1 });
  const writer = await startWriter({ ...options, path, maxWaiting: 10 });
  const ensure = (n: number) => writer.call('teams.ensure', { slug: `team-${n}` });
  const results = await Promise.allSettled(Array.from({ length: 15 }, (_, n) => ensure(n)));
  assert.equal(results.filter((result) => result.status === 'fulfilled').length, 10);
  for (const result of results.slice(10)) {
    assert.ok(result.status === 'rejected' && problem('overloaded')(result.reason));
  }
  await ensure(20);
  await writer.close();
  await writer.close();
  await assert.rejects(ensure(21), problem('stopping'));
  await rm(directory, { recursive: true });
});

test('rejects all that is pending, and all that comes later, when the thread dies', async () => {
  const script = `require('node:worker_threads').parentPort.on('message', () => { throw new Error('broken') })`;
  const writer = new Writer(new Worker(script, { eval: true }), options);
  const pending = Array.from({ length: 600 }, () => writer.call('teams.ensure', { slug: 'a' }));
  for (const result of await Promise.allSettled(pending)) {
    assert.ok(result.status === 'rejected' && problem('database_unavailable')(result.reason));
    assert.equal((result.reason.cause as Error).message, 'broken');
  }
  assert.equal(writer.alive, false);
  await assert.rejects(writer.call('teams.ensure', { slug: 'a' }), problem('database_unavailable'));
  await writer.close();
});

test('ends when the thread dies while it closes', async () => {
  const script = `require('node:worker_threads').parentPort.on('message', () => process.exit(1))`;
  const writer = new Writer(new Worker(script, { eval: true }), options);
  const pending = writer.call('teams.ensure', { slug: 'a' });
  const closed = writer.close();
  await assert.rejects(pending, problem('database_unavailable'));
  await closed;
});
