/** The fixed-window counter. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimitWindow } from './rate-limits.ts';

const RATE = { count: 3, windowMs: 1_000 };

test('starts a window at the first request, and resets the count at its end', () => {
  const window = new RateLimitWindow(RATE);
  assert.deepEqual(window.take('one', 500), { isWithin: true, left: 2, untilMs: 1_000 });
  assert.deepEqual(window.take('one', 900), { isWithin: true, left: 1, untilMs: 600 });
  assert.deepEqual(window.take('one', 900), { isWithin: true, left: 0, untilMs: 600 });
  assert.deepEqual(window.take('one', 1_499), { isWithin: false, left: 0, untilMs: 1 });
  assert.equal(window.take('two', 1_499).left, 2);
  assert.deepEqual(window.take('one', 1_500), { isWithin: true, left: 2, untilMs: 1_000 });
});

test('refusals do not extend a window, and a request that costs more than the rest uses up the rest', () => {
  const window = new RateLimitWindow(RATE);
  assert.deepEqual(window.take('one', 0, 10), { isWithin: true, left: 0, untilMs: 1_000 });
  for (let ms = 1; ms < 1_000; ms++) assert.equal(window.take('one', ms, 10).isWithin, false);
  assert.equal(window.take('one', 1_000).left, 2);
});

test('counts a bounded number of clients, and forgets the oldest windows first', () => {
  const window = new RateLimitWindow(RATE, 100);
  for (let n = 0; n < 10_000; n++) {
    window.take(`address ${n}`, n / 100);
    assert.ok(window.size <= 100);
  }
  assert.equal(window.take('address 9950', 100).left, 1);
  assert.equal(window.take('address 9000', 100).left, 2);
});

test('forgets windows that have ended', () => {
  const window = new RateLimitWindow(RATE);
  for (let n = 0; n < 1_000; n++) window.take(`address ${n}`, 0);
  window.take('another', 1_000);
  assert.equal(window.size, 1);
});
