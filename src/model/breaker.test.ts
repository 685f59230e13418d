/** What is written down of a circuit breaker, and in which words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Breaker, breakerOf, breakerReason, isSameBreaker, startHealth } from './lane.ts';

const health = startHealth(null);
const open: Breaker = { state: 'open', since: 1_000, until: 31_000, failures: 12 };

test('nothing is written while what is due goes out at once, or rests for less than a second', () => {
  assert.equal(breakerOf(health, null, 1_000), null);
  assert.equal(breakerOf({ ...health, restsUntil: 1_999 }, open, 1_000), null);
});

test('it keeps since when it is held back, from one state to the next', () => {
  const first = breakerOf({ ...health, state: 'open', restsUntil: 31_000, failures: 12 }, null, 1_000);
  assert.deepEqual(first, open);
  const then = breakerOf({ ...health, state: 'half_open', restsUntil: 31_000, failures: 0 }, first, 32_000);
  assert.deepEqual(then, { ...open, state: 'half_open', failures: 0 });
});

test('it is news when its state or its end is another one', () => {
  assert.ok(isSameBreaker(open, { ...open, until: 31_500, failures: 14 }));
  assert.ok(!isSameBreaker(open, { ...open, until: 61_000 }));
  assert.ok(!isSameBreaker(open, { ...open, state: 'half_open' }));
  assert.ok(!isSameBreaker(null, open));
  assert.ok(isSameBreaker(null, null));
});

test('each state is told in words; a rest that is over is none', () => {
  assert.equal(breakerReason(open, 2_000), 'The endpoint has failed 12 times in a row');
  assert.match(breakerReason({ ...open, failures: 3 }, 2_000) ?? '', /half of the attempts/);
  assert.match(breakerReason({ ...open, state: 'half_open' }, 2_000) ?? '', /answers again/);
  assert.match(breakerReason({ ...open, state: 'closed' }, 2_000) ?? '', /asked for a pause/);
  assert.equal(breakerReason({ ...open, state: 'closed' }, 31_000), null);
});
