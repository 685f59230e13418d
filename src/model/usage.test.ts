/** Usage counters, and percentiles computed from them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUsage, attemptUsage, latencyPercentile, noUsage, periodStart } from './usage.ts';

const OK = { outcome: 'ok', status: 200, number: 1 } as const;

function latencyOf(durations: readonly number[]): number[] {
  const sum = noUsage();
  for (const durationMs of durations) addUsage(sum, attemptUsage({ ...OK, durationMs }));
  return sum.latency;
}

test('a percentile is between the bounds of its bucket', () => {
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

test('a percentile is exact for one delivery, null for none, and at most the last bound', () => {
  assert.equal(latencyPercentile(latencyOf([15]), 0.5), 15);
  assert.equal(latencyPercentile(latencyOf([]), 0.5), null);
  assert.equal(latencyPercentile(latencyOf([31_000]), 0.95), 30_000);
});

test('the last failed attempt counts as a dead delivery, and a 410 response does not', () => {
  const failed = { outcome: 'http', status: 500, durationMs: 1 } as const;
  assert.deepEqual(attemptUsage({ ...failed, number: 9 }), { failedAttempts: 1, dead: 0 });
  assert.deepEqual(attemptUsage({ ...failed, number: 10 }), { failedAttempts: 1, dead: 1 });
  assert.deepEqual(attemptUsage({ ...failed, status: 410, number: 10 }), { failedAttempts: 1, dead: 0 });
});

test('missing counters are zero', () => {
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

test('hours and days start as in UTC', () => {
  const at = Date.parse('2026-11-21T04:59:59.999Z');
  assert.equal(periodStart('hour', at), Date.parse('2026-11-21T04:00:00Z'));
  assert.equal(periodStart('day', at), Date.parse('2026-11-21T00:00:00Z'));
});
