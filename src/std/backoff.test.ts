/** Exponential backoff. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fullJitterMs } from './backoff.ts';

test('the longest wait doubles with each failure up to the ceiling', () => {
  const longest = (failures: number) => fullJitterMs({ failures, baseMs: 5_000, maxMs: 60_000, random: 1 });
  assert.deepEqual([1, 2, 3, 4, 5, 50].map(longest), [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
});

test('the shortest wait is a millisecond', () => {
  assert.equal(fullJitterMs({ failures: 3, baseMs: 5_000, maxMs: 60_000, random: 0 }), 1);
});
