/** The token bucket that limits the rate of a webhook. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { asOf, FULL_BUCKET, refill, tokenAt } from './lane.ts';

test('the rate is never exceeded, and is reached by a webhook that always has deliveries', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.1, max: 500, noNaN: true }), fc.array(fc.nat(3_000)), (rate, pauses) => {
      let bucket = FULL_BUCKET;
      let nowMs = 1_000;
      const starts: number[] = [];
      for (const pauseMs of [...pauses, ...Array(50).fill(0)]) {
        nowMs = Math.max(nowMs + pauseMs, tokenAt(bucket, rate));
        const { tokens } = refill(bucket, rate, nowMs);
        assert.ok(tokens >= 1 - 1e-9, 'there is a token at `tokenAt`');
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

test('a bucket used before the clock was set back applies from now', () => {
  const bucket = { tokens: 0, at: 9_000 };
  assert.equal(tokenAt(asOf(bucket, 1_000), 2), 1_500);
  assert.equal(asOf(bucket, 9_000), bucket);
});
