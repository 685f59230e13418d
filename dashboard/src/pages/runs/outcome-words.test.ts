/** The notification after an action on several runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outcomeWords } from './outcome-words.ts';

const failed = (count: number) => ({ count, why: count === 0 ? undefined : 'The run has ended' });

test('counts successes, and gives the reason of failures', () => {
  assert.equal(outcomeWords('queued', { done: 1, failed: failed(0) }), '1 run queued');
  assert.equal(
    outcomeWords('queued', { done: 3, failed: failed(2) }),
    '3 runs queued, 2 failed: The run has ended',
  );
});

test('does not report a success if every call failed', () => {
  assert.deepEqual(outcomeWords('canceled', { done: 0, failed: failed(2) }), {
    nothing: 'No runs canceled: The run has ended',
  });
});
