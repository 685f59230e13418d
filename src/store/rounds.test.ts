/** Chores in rounds: each call continues where the last one stopped. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inRounds } from './operation.ts';

/** Counts from 1 to 5, `limit` numbers per call. */
async function step({ after, limit }: { after: number; limit: number }) {
  const last = Math.min(after + limit, 5);
  return { next: last < 5 ? last : null, last };
}

test('continues where the last call stopped, and starts over at the end of a round', async () => {
  const chore = inRounds(0, step);
  assert.deepEqual(await chore({ limit: 3 }), { done: false, last: 3 });
  assert.deepEqual(await chore({ limit: 3 }), { done: true, last: 5 });
  assert.deepEqual(await chore({ limit: 3 }), { done: false, last: 3 });
});

test('a call that fails does not move the cursor', async () => {
  let fails = false;
  const chore = inRounds(0, async (input: Parameters<typeof step>[0]) => {
    if (fails) throw new Error('busy');
    return step(input);
  });
  await chore({ limit: 1 });
  fails = true;
  await assert.rejects(chore({ limit: 1 }), /busy/);
  fails = false;
  assert.deepEqual(await chore({ limit: 1 }), { done: false, last: 2 });
});

test('a step can return done: false at the end of a round', async () => {
  const chore = inRounds(0, async (input: Parameters<typeof step>[0]) => ({
    ...(await step(input)),
    done: false,
  }));
  assert.deepEqual(await chore({ limit: 5 }), { done: false, last: 5 });
});
