/** What is said of doing the same with several runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outcomeWords } from './outcome-words.ts';

const refused = (count: number) => ({ count, why: count === 0 ? undefined : 'It has ended' });

test('what succeeded is counted, and what did not says why', () => {
  assert.equal(outcomeWords('queued', { done: 1, refused: refused(0) }), '1 run queued');
  assert.equal(
    outcomeWords('queued', { done: 3, refused: refused(2) }),
    '3 runs queued, 2 refused: It has ended',
  );
});

test('none is no success: it says why', () => {
  assert.deepEqual(outcomeWords('canceled', { done: 0, refused: refused(2) }), {
    nothing: 'No run canceled: It has ended',
  });
});
