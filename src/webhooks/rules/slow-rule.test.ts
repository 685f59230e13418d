/**
 * Evaluations that take too long. Expressions have a limit of steps, so none should; the engine ends the thread in case
 * that one does, and only the webhook of that evaluation waits.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { listed, setUpRules } from '../../../test/support/webhooks/rules.ts';
import { startThread } from '../../std/own-files.ts';
import { TOO_SLOW } from './examination.ts';
import type { StartRules } from './guarded-thread.ts';

import { WATCHED } from './watched.ts';

const FILTER = 'record.n > 0';
const records = { a: { n: 1 }, b: { n: 2 }, c: { n: 3 } };

/** A thread that hangs in the second evaluation of a webhook's decision. */
const HANGS = `
  const { parentPort, workerData: { watched, webhookId } } = require('node:worker_threads');
  parentPort.on('message', ({ call, close }) => {
    if (close) return parentPort.close();
    parentPort.postMessage({ call, at: { webhookId, sequence: 3, rewrites: 0 } });
    watched[${WATCHED.examined}] = 1;
    watched[${WATCHED.isEvaluating}] = 1;
    for (;;);
  });`;

/** Starts a thread that hangs, and real threads after that. */
function firstHangs(webhookId: () => string): StartRules & { hanging: Promise<void> } {
  const hanging = Promise.withResolvers<void>();
  let threads = 0;
  const start = (data: Parameters<StartRules>[0]) => {
    threads += 1;
    if (threads > 1) return startThreadOf(data);
    const worker = new Worker(HANGS, { eval: true, workerData: { ...data, webhookId: webhookId() } });
    worker.on('message', () => hanging.resolve());
    return worker;
  };
  return Object.assign(start, { hanging: hanging.promise });
}

test('an evaluation that takes too long counts as no match; other webhooks do not wait', async (t) => {
  const { subscribe, publish, engine, sent, decisions, advance, store, teamId, done } = await setUpRules(t);
  const slow = await subscribe({ filter: FILTER, firstVersion: 'send' });
  const other = await subscribe({ filter: FILTER, firstVersion: 'send' });
  await publish(records);
  const rules = engine({ startThread: firstHangs(() => slow) });
  await rules.tick();
  assert.deepEqual((await sent(other)).map(listed), [['added a', 'added b', 'added c']]);
  assert.deepEqual(await sent(slow), [], 'the webhook rests');
  assert.deepEqual(
    done.map(({ webhookId, mistake }) => [webhookId, mistake]),
    [
      [slow, 'time'],
      [other, null],
    ],
  );
  advance(1_000);
  await rules.tick();
  assert.deepEqual((await sent(slow)).map(listed), [['added a', 'added c']]);
  assert.deepEqual(await decisions(slow), [{ state: 'sent', matched: 2, examined: 3, reason: null }]);
  const webhook = await store.webhooks.get({ teamId, id: slow });
  assert.deepEqual([webhook?.ruleMistake?.recordId, webhook?.ruleMistake?.message], ['b', TOO_SLOW]);
});

test('an engine stops although an evaluation hangs', async (t) => {
  const { subscribe, publish, engine, decisions } = await setUpRules(t);
  const slow = await subscribe({ filter: FILTER, firstVersion: 'send' });
  await publish(records);
  const startThread = firstHangs(() => slow);
  const rules = engine({ startThread });
  const ticking = rules.tick();
  await startThread.hanging;
  await rules.stop();
  await ticking;
  assert.equal((await decisions(slow))[0]?.state, 'pending');
});

test('the thread is ended in the middle: the next one repeats the turn', async (t) => {
  const { subscribe, publish, engine, sent } = await setUpRules(t);
  const webhook = await subscribe({ filter: FILTER, firstVersion: 'send' });
  await publish(records);
  let threads = 0;
  const startThread: StartRules = (data) => {
    threads += 1;
    const worker = startThreadOf(data);
    if (threads === 1) void worker.terminate();
    return worker;
  };
  await engine({ startThread }).tick();
  assert.equal(threads, 2);
  assert.deepEqual((await sent(webhook)).map(listed), [['added a', 'added b', 'added c']]);
});

function startThreadOf(data: Parameters<StartRules>[0]): Worker {
  return startThread('rule-thread', { workerData: data });
}
