/** Threads that exist only while there is work, with fake threads. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { Thread, ThreadOnDemand } from './thread.ts';

function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const log: string[] = [];
  const workers: EventEmitter[] = [];
  const threads = new ThreadOnDemand<string, number>({
    start: () => {
      const name = `thread ${workers.length + 1}`;
      const postMessage = (message: string) => {
        log.push(`${name}: ${message}`);
        worker.emit('exit');
      };
      const worker = Object.assign(new EventEmitter(), { postMessage });
      workers.push(worker);
      return new Thread(worker as unknown as Worker, name, (number) => number);
    },
    closing: 'close',
    onDied: ({ message }) => log.push(message),
  });
  return { threads, workers, log };
}

test('a thread ends when there was no work for a while, and the next work starts another', (t) => {
  const { threads, log } = setUp(t);
  const first = threads.take();
  assert.equal(threads.take(), first);
  threads.done(first);
  t.mock.timers.tick(60_000);
  assert.deepEqual(log, [], 'there is still work');
  threads.done(first);
  t.mock.timers.tick(10_000);
  assert.equal(threads.take(), first);
  t.mock.timers.tick(60_000);
  threads.done(first);
  t.mock.timers.tick(60_000);
  assert.deepEqual(log, ['thread 1: close']);
  assert.notEqual(threads.take(), first);
});

test('work that ends after its thread has died does not end the next thread', async (t) => {
  const { threads, workers, log } = setUp(t);
  const first = threads.take();
  workers[0]?.emit('exit');
  await first.ended;
  const second = threads.take();
  threads.done(first);
  t.mock.timers.tick(60_000);
  assert.deepEqual(log, ['thread 1 has ended']);
  threads.done(second);
  t.mock.timers.tick(60_000);
  assert.deepEqual(log, ['thread 1 has ended', 'thread 2: close']);
});
