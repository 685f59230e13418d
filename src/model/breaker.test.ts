/** The stored state of a circuit breaker, and its description. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Breaker,
  breakerOf,
  breakerReason,
  hasJustOpened,
  isSameBreaker,
  type LaneHealth,
  startHealth,
} from './lane.ts';

const health = startHealth(null);
const open: Breaker = { state: 'open', since: 1_000, until: 31_000, failures: 12 };

test('nothing is stored while deliveries are not held back, or for less than a second', () => {
  assert.equal(breakerOf(health, null, 1_000), null);
  assert.equal(breakerOf({ ...health, restsUntil: 1_999 }, open, 1_000), null);
});

test('`since` stays the same when the state changes', () => {
  const first = breakerOf({ ...health, state: 'open', restsUntil: 31_000, failures: 12 }, null, 1_000);
  assert.deepEqual(first, open);
  const then = breakerOf({ ...health, state: 'half_open', restsUntil: 31_000, failures: 0 }, first, 32_000);
  assert.deepEqual(then, { ...open, state: 'half_open', failures: 0 });
});

test('a breaker remembers when it first opened, until an attempt succeeds', () => {
  const seen: (Breaker | null)[] = [null];
  const failing = { ...health, restsUntil: 31_000, failures: 12, failingSince: 500 };
  const then = (state: LaneHealth['state'], nowMs: number, failingSince: number | null = 500) => {
    const before = seen.at(-1) ?? null;
    const now = breakerOf({ ...failing, state, failingSince }, before, nowMs);
    seen.push(now);
    return [now?.openedAt, hasJustOpened(now, before), isSameBreaker(now, before)];
  };
  assert.deepEqual(then('half_open', 900), [undefined, false, false], 'after a restart');
  assert.deepEqual(then('open', 1_000), [1_000, true, false]);
  assert.deepEqual(then('half_open', 2_000), [1_000, false, false], 'the probe was refused');
  assert.deepEqual(then('open', 3_000), [1_000, false, false]);
  assert.deepEqual(then('half_open', 4_000), [1_000, false, false]);
  assert.deepEqual(then('half_open', 5_000, null), [undefined, false, false], 'a success, which is stored');
  assert.deepEqual(then('half_open', 6_000), [undefined, false, true]);
  assert.deepEqual(then('open', 7_000), [7_000, true, false]);
});

test('a change of the state or the end is stored', () => {
  assert.ok(isSameBreaker(open, { ...open, until: 31_500, failures: 14 }));
  assert.ok(!isSameBreaker(open, { ...open, until: 61_000 }));
  assert.ok(!isSameBreaker(open, { ...open, state: 'half_open' }));
  assert.ok(!isSameBreaker(null, open));
  assert.ok(isSameBreaker(null, null));
});

test('every state has a description, except a rest that is over', () => {
  assert.equal(breakerReason(open, 2_000), 'The endpoint has failed 12 times in a row');
  assert.match(breakerReason({ ...open, failures: 3 }, 2_000) ?? '', /half of the attempts/);
  assert.match(breakerReason({ ...open, state: 'half_open' }, 2_000) ?? '', /responds again/);
  assert.match(breakerReason({ ...open, state: 'closed' }, 2_000) ?? '', /asked for a pause/);
  assert.equal(breakerReason({ ...open, state: 'closed' }, 31_000), null);
});
