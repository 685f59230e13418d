/** The writer thread: its batches, limits and crashes. */

import assert from 'node:assert/strict';
import { on } from 'node:events';
import { type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { emptyDatabaseFile } from '../../../test/support/store/empty-database.ts';
import { Problem } from '../../model/error.ts';
import { NO_QUOTAS } from '../../model/quota.ts';
import type { Team } from '../../model/team.ts';
import { silentLogger } from '../../observe/log.ts';
import type { Touched } from '../transaction.ts';
import { createWriter, Writer, type WriterOptions } from './writer.ts';

const options: WriterOptions = {
  path: '/nowhere/flowhook.db',
  synchronous: 'OFF',
  clock: () => 1,
  quotas: NO_QUOTAS,
  publicUrl: () => 'http://localhost',
  log: silentLogger,
  onTouched: () => {},
};
/** A thread that reports itself ready, and runs the given code for each message. */
const threadThat = (code: string) =>
  new Worker(
    `const { parentPort } = require('node:worker_threads');
     parentPort.on('message', (message) => { ${code} });
     parentPort.postMessage({ ready: true });`,
    { eval: true },
  );
/** Closes the writer after the test, so that its thread also ends if the test fails. */
function closing<W extends { close(): Promise<void> }>(t: TestContext, writer: W): W {
  t.after(() => writer.close());
  return writer;
}
const batchOf = (calls: number) => ({
  now: 1,
  publicUrl: '',
  calls: Array.from({ length: calls }, () => ({ name: 'teams.ensure', input: { slug: 'acme' } })),
});
const problem = (code: string) => (error: unknown) => error instanceof Problem && error.code === code;

test('rejects when the thread cannot open the database', async () => {
  await assert.rejects(createWriter(options).start(), /unable to open database file/);
  await assert.rejects(createWriter(options).call('teams.ensure', {}), /unable to open database file/);
});

test('the first call starts the thread, and a writer without calls never starts it', async (t) => {
  let started = 0;
  const open = () => {
    started += 1;
    return threadThat(`parentPort.close()`);
  };
  await new Writer(open, options).close();
  assert.equal(started, 0);
  const writer = closing(t, new Writer(open, options));
  const calls = [writer.call('teams.ensure', {}), writer.call('teams.ensure', {})];
  for (const call of calls) await assert.rejects(call, problem('database_unavailable'));
  assert.equal(started, 1);
});

test('a call that is made while the thread starts is committed, even if the writer is closed meanwhile', async (t) => {
  const path = await emptyDatabaseFile(t);
  const writer = closing(t, createWriter({ ...options, path }));
  const call = writer.call('teams.ensure', { slug: 'acme' });
  const closed = writer.close();
  assert.ok(await call);
  await closed;
  await assert.rejects(writer.start(), problem('stopping'));
});

test('settlements share the commit of other calls while these are in progress, but not of each other', async (t) => {
  const writer = closing(t, createWriter({ ...options, path: await emptyDatabaseFile(t) }));
  await writer.start();
  const settled = writer.call('deliveries.settle', { rows: [] });
  assert.equal(writer.isWritingOthers, false);
  const made = writer.call('teams.ensure', { slug: 'acme' });
  assert.equal(writer.isWritingOthers, true);
  await Promise.all([settled, made]);
  assert.equal(writer.isWritingOthers, false);
});

test('after a thread could not start, the next call starts another', async (t) => {
  let started = 0;
  const open = () => {
    started += 1;
    return new Worker(`throw new Error('no')`, { eval: true });
  };
  const writer = closing(t, new Writer(open, options));
  for (const _ of [1, 2]) await assert.rejects(writer.call('teams.ensure', {}));
  assert.equal(started, 2);
});

test('rejects calls while too many wait, and accepts calls again afterwards', async (t) => {
  const path = await emptyDatabaseFile(t);
  const writer = closing(t, createWriter({ ...options, path, maxWaiting: 10 }));
  await writer.start();
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
});

/** A thread that returns the team of each call. */
const ECHO = `if (message.close) process.exit();
  const results = message.batch.calls.map((call) => ({ ok: true, value: call.input.teamId }));
  const touched = { keys: false, jobs: false, teams: [], cancels: false, deliveries: false, lanes: null };
  parentPort.postMessage({ result: { results, touched } });`;

test('sends new calls before all callers of a large batch have their results', async (t) => {
  const order: string[] = [];
  const open = () => {
    const thread = threadThat(ECHO);
    const send = thread.postMessage.bind(thread);
    thread.postMessage = (message) => {
      order.push('sent');
      send(message);
    };
    return thread;
  };
  const writer = closing(t, new Writer(open, options));
  await writer.start();
  const call = () => writer.call('jobs.prune', { teamId: 'a' }).then(() => order.push('returned'));
  const [first, ...others] = Array.from({ length: 100 }, call);
  await Promise.all([first?.then(call), ...others]);
  assert.equal(order[0], 'sent');
  assert.equal(order[order.lastIndexOf('sent') - 1], 'returned');
  assert.ok(order.lastIndexOf('sent') < 100, order.join());
});

test('closing ends after every caller of a large batch has its result', async (t) => {
  const writer = closing(t, new Writer(() => threadThat(ECHO), options));
  await writer.start();
  let returned = 0;
  for (let made = 0; made < 100; made += 1)
    void writer.call('jobs.prune', { teamId: 'a' }).then(() => {
      returned += 1;
    });
  await writer.close();
  assert.equal(returned, 100);
});

test('a call of one team is in the next batch even when many calls of another team wait', async (t) => {
  const writer = closing(t, new Writer(() => threadThat(ECHO), options));
  await writer.start();
  const order: string[] = [];
  const call = async (teamId: string) => order.push((await writer.call('jobs.prune', { teamId })) as string);
  const flood = Array.from({ length: 6_000 }, () => call('flood'));
  await Promise.race(flood);
  await Promise.all([call('small'), ...flood]);
  const waitedFor = order.indexOf('small');
  // Before this call, one batch has returned and two or three more were sent. The call is in the batch after them.
  assert.ok(waitedFor < 5 * 512, `it waited for ${waitedFor} calls`);
});

test('batches that have arrived share a transaction, up to its maximum size', async (t) => {
  const workerData = { path: await emptyDatabaseFile(t), synchronous: 'OFF', quotas: NO_QUOTAS };
  const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData });
  t.after(() => thread.terminate());
  const messages = on(thread, 'message', { close: ['exit'] });
  // The thread receives these messages together, when it has opened the database.
  for (const calls of [1, 200, 300, 50, 600]) thread.postMessage({ batch: batchOf(calls) });
  thread.postMessage({ close: true });
  const sizes = [];
  for await (const [message] of messages) if ('result' in message) sizes.push(message.result.results.length);
  assert.deepEqual(sizes, [501, 50, 600]);
});

test('rejects all pending operations when the thread dies, and new ones until it is restarted', async (t) => {
  const writer = closing(t, new Writer(() => threadThat(`throw new Error('broken')`), options));
  await writer.start();
  const pending = Array.from({ length: 600 }, () => writer.call('teams.ensure', { slug: 'a' }));
  for (const result of await Promise.allSettled(pending)) {
    assert.ok(result.status === 'rejected' && problem('database_unavailable')(result.reason));
    assert.equal((result.reason.cause as Error).message, 'broken');
  }
  assert.equal(writer.trouble?.code, 'database_unavailable');
  await assert.rejects(writer.call('teams.ensure', { slug: 'a' }), problem('database_unavailable'));
});

test('closing ends when the thread dies meanwhile', async (t) => {
  const writer = closing(t, new Writer(() => threadThat('process.exit(1)'), options));
  await writer.start();
  const pending = writer.call('teams.ensure', { slug: 'a' });
  const closed = writer.close();
  await assert.rejects(pending, problem('database_unavailable'));
  await closed;
});

test('restarts a thread that dies until it works, and notifies the watchers', async (t) => {
  const path = await emptyDatabaseFile(t);
  const real = new URL('./writer-thread.ts', import.meta.url);
  const threads = [
    () => threadThat(`throw new Error('broken')`),
    () => new Worker('process.exit(1)', { eval: true }),
    () => new Worker(real, { workerData: { path: '/nowhere/flowhook.db', synchronous: 'OFF' } }),
    () => new Worker(real, { workerData: { path, synchronous: 'OFF' } }),
  ];
  let notified = Promise.withResolvers<Touched>();
  const open = () => (threads.shift() as () => Worker)();
  const onTouched = (touched: Touched) => notified.resolve(touched);
  const writer = closing(t, new Writer(open, { ...options, restartMs: 1, onTouched }));
  await writer.start();
  notified = Promise.withResolvers();
  await assert.rejects(writer.call('teams.ensure', { slug: 'a' }), problem('database_unavailable'));
  assert.deepEqual(await notified.promise, {
    keys: true,
    jobs: true,
    teams: null,
    cancels: true,
    deliveries: true,
    lanes: null,
    decisions: true,
  });
  assert.equal(writer.trouble, undefined);
  assert.equal(((await writer.call('teams.ensure', { slug: 'a' })) as Team).slug, 'a');
});

test('can be closed while it waits to restart the thread', async (t) => {
  const writer = closing(
    t,
    new Writer(() => threadThat('process.exit(1)'), { ...options, restartMs: 1_000_000 }),
  );
  await writer.start();
  await assert.rejects(writer.call('teams.ensure', { slug: 'a' }), problem('database_unavailable'));
  await writer.close();
  await assert.rejects(writer.call('teams.ensure', { slug: 'a' }), problem('stopping'));
});
