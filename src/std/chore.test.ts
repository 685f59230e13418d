/** Background work: when it runs, the size of its steps, and stopping it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Chore, inSteps } from './chore.ts';

test('works on every tick, never twice at the same time, and continues after a failure', async () => {
  const failures: unknown[] = [];
  let works = 0;
  const chore = new Chore({
    everyMs: 60_000,
    random: () => 0,
    failed: (error) => failures.push(error),
    work: async () => {
      works += 1;
      if (works === 1) throw new Error('the first');
    },
  });
  await Promise.all([chore.tick(), chore.tick()]);
  assert.deepEqual([works, failures.length], [1, 1]);
  await chore.tick();
  assert.deepEqual([works, failures.length], [2, 1]);
  await chore.stop();
});

test('stopping ends the steps', async () => {
  const stepped = Promise.withResolvers<void>();
  let steps = 0;
  const step = async () => {
    steps += 1;
    stepped.resolve();
    return { done: false };
  };
  const chore = new Chore({
    everyMs: 60_000,
    random: () => 0,
    failed: (error) => assert.ifError(error),
    work: (signal) => inSteps(step, { first: 1, max: 10 }, signal),
  });
  await chore.stop();
  chore.start();
  chore.start();
  const working = chore.tick();
  await stepped.promise;
  await chore.stop();
  const after = steps;
  await working;
  assert.equal(steps, after);
});

test('quick steps grow up to the maximum, and end when one is done', async () => {
  const limits: number[] = [];
  const step = async (limit: number) => ({ done: limits.push(limit) === 5 });
  await inSteps(step, { first: 2, max: 10 }, new AbortController().signal);
  assert.deepEqual(limits, [2, 4, 8, 10, 10]);
});
