/** Whose turn it is, and the rate. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asOf, FULL_BUCKET, nextClass, refill, tokenAt } from './lane-turn.ts';

test('live goes before retry before replay', () => {
  assert.equal(nextClass(0, { live: 1, retry: 1, replay: 1 }), 'live');
  assert.equal(nextClass(0, { live: 0, retry: 1, replay: 1 }), 'retry');
  assert.equal(nextClass(0, { live: 0, retry: 0, replay: 1 }), 'replay');
  assert.equal(nextClass(0, { live: 0, retry: 0, replay: 0 }), undefined);
});

test('each eighth request goes to what is not live, in turn to retry and replay, and none is wasted', () => {
  const served = { live: 0, retry: 0, replay: 0 };
  for (let turn = 0; turn < 160; turn++) {
    served[nextClass(turn, { live: 9, retry: 9, replay: 9 }) ?? 'live'] += 1;
  }
  assert.deepEqual(served, { live: 140, retry: 10, replay: 10 });
  for (let turn = 0; turn < 16; turn++) {
    assert.equal(nextClass(turn, { live: 9, retry: 0, replay: 0 }), 'live');
    assert.equal(nextClass(turn, { live: 0, retry: 0, replay: 9 }), 'replay');
  }
});

test('a rate is kept over any stretch of time, and reached by whoever always has something to send', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.1, max: 500, noNaN: true }), fc.array(fc.nat(3_000)), (rate, pauses) => {
      let bucket = FULL_BUCKET;
      let nowMs = 1_000;
      const starts: number[] = [];
      for (const pauseMs of [...pauses, ...Array(50).fill(0)]) {
        nowMs = Math.max(nowMs + pauseMs, tokenAt(bucket, rate));
        const { tokens } = refill(bucket, rate, nowMs);
        assert.ok(tokens >= 1 - 1e-9, 'when it says that there is a token, there is one');
        bucket = { tokens: tokens - 1, at: nowMs };
        starts.push(nowMs);
      }
      const saved = Math.max(1, rate / 10);
      for (const [index, from] of starts.entries()) {
        const within = starts.slice(index).filter((at) => at - from <= 1_000).length;
        assert.ok(within <= rate + saved + 1, `${within} within a second at ${rate}`);
      }
    }),
    { seed: 4, numRuns: 100 },
  );
});

test('a bucket that was emptied before the clock was set back counts from now', () => {
  const bucket = { tokens: 0, at: 9_000 };
  assert.equal(tokenAt(asOf(bucket, 1_000), 2), 1_500);
  assert.equal(asOf(bucket, 9_000), bucket);
});
