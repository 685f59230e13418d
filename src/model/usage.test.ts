/** Numbers that add up, and percentiles found among them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUsage, attemptUsage, latencyPercentile, noUsage, periodStart } from './usage.ts';

const OK = { outcome: 'ok', status: 200, number: 1 } as const;

function latencyOf(durations: readonly number[]): number[] {
  const sum = noUsage();
  for (const durationMs of durations) addUsage(sum, attemptUsage({ ...OK, durationMs }));
  return sum.latency;
}

test('a percentile is off by no more than the bounds that it lies between', () => {
  const durations = Array.from({ length: 1_000 }, (_, n) => n + 1);
  for (const [share, least, most] of [
    [0.5, 480, 520],
    [0.95, 930, 970],
    [1, 1_000, 1_000],
  ] as const) {
    const found = latencyPercentile(latencyOf(durations), share) ?? 0;
    assert.ok(found >= least && found <= most, `${share}: ${found}`);
  }
});

test('one delivery has a percentile, none has none, and what took longer than any bound has the last one', () => {
  assert.equal(latencyPercentile(latencyOf([15]), 0.5), 15);
  assert.equal(latencyPercentile(latencyOf([]), 0.5), null);
  assert.equal(latencyPercentile(latencyOf([31_000]), 0.95), 30_000);
});

test('a delivery is dead by the attempt after which there is no other, and not by an endpoint that is gone', () => {
  const failed = { outcome: 'http', status: 500, durationMs: 1 } as const;
  assert.deepEqual(attemptUsage({ ...failed, number: 9 }), { failedAttempts: 1, dead: 0 });
  assert.deepEqual(attemptUsage({ ...failed, number: 10 }), { failedAttempts: 1, dead: 1 });
  assert.deepEqual(attemptUsage({ ...failed, status: 410, number: 10 }), { failedAttempts: 1, dead: 0 });
});

test('numbers that an earlier version did not count are taken for nothing', () => {
  const sum = noUsage();
  addUsage(sum, { finished: 2, latency: [1] });
  addUsage(sum, { failed: 1 });
  assert.deepEqual(
    { ...sum, latency: sum.latency.slice(0, 2) },
    {
      ...noUsage(),
      finished: 2,
      failed: 1,
      latency: [1, 0],
    },
  );
});

test('hours and days begin as those of UTC do', () => {
  const at = Date.parse('2026-11-21T04:59:59.999Z');
  assert.equal(periodStart('hour', at), Date.parse('2026-11-21T04:00:00Z'));
  assert.equal(periodStart('day', at), Date.parse('2026-11-21T00:00:00Z'));
});
