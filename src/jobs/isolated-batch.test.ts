/** Batches in which some items fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IsolatedBatch } from './isolated-batch.ts';

function rounds() {
  const failed: string[] = [];
  const items = new IsolatedBatch<string>({
    nameOf: (key) => ({ teamId: key[0] ?? '', key }),
    failed: (_, key) => failed.push(key),
  });
  return {
    failed,
    async round(keys: string[], isLocked: (key: string) => boolean) {
      const tried: string[] = [];
      await items.each(keys, async (key) => {
        tried.push(key);
        if (isLocked(key)) throw new Error('Locked');
      });
      return tried;
    },
  };
}

test('an item that fails does not stop the others, and comes last in the next batch', async () => {
  const { round, failed } = rounds();
  const isLocked = (key: string) => key === 'a1';
  assert.deepEqual(await round(['a1', 'a2', 'b1'], isLocked), ['a1', 'a2', 'b1']);
  assert.deepEqual(failed, ['a1']);
  assert.deepEqual(await round(['a1', 'a3', 'b2'], isLocked), ['a3', 'b2', 'a1']);
  await round(['a1'], () => false);
  assert.deepEqual(await round(['a1', 'b3'], isLocked), ['a1', 'b3']);
});

test('after three failures of a team, the rest of its items wait for the next batch and come first there', async () => {
  const { round } = rounds();
  const locked = ['a1', 'a2', 'a3'];
  const isLocked = (key: string) => locked.includes(key);
  assert.deepEqual(await round(['a1', 'a2', 'a3', 'a4', 'b1'], isLocked), ['a1', 'a2', 'a3', 'b1']);
  assert.deepEqual(await round(['a1', 'a2', 'a3', 'a4'], isLocked), ['a4', 'a1', 'a2', 'a3']);
});

test('works on at most `atOnce` items concurrently', async () => {
  const items = new IsolatedBatch<string>({
    nameOf: (key) => ({ teamId: 'a', key }),
    failed: (error) => assert.fail(error as Error),
    atOnce: 2,
  });
  const second = Promise.withResolvers<void>();
  let working = 0;
  const done: string[] = [];
  await items.each(['a1', 'a2', 'a3'], async (key) => {
    working += 1;
    assert.ok(working <= 2);
    if (key === 'a2') second.resolve();
    // The first item waits until the second one is in progress.
    await second.promise;
    working -= 1;
    done.push(key);
  });
  assert.deepEqual(done, ['a1', 'a2', 'a3']);
});
