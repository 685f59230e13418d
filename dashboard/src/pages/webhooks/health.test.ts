/** How well an endpoint does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Usage, UsageBucket } from 'flowhook-client';
import { healthOf, lastWords, percent, shortEvent, standing } from './health.ts';

const hour = (deliveries: Partial<NonNullable<UsageBucket['deliveries']>>): UsageBucket => ({
  start: '2026-11-21T00:00:00.000Z',
  deliveries: {
    delivered: 0,
    failedAttempts: 0,
    dead: 0,
    latencyMs: { p50: null, p95: null },
    ...deliveries,
  },
});
const usage = (...buckets: UsageBucket[]): Usage => ({
  by: 'hour',
  from: '',
  to: '',
  countedUntil: '',
  buckets,
});

test('health adds the hours up, and takes the latency of the newest one that has any', () => {
  assert.deepEqual(
    healthOf(
      usage(
        hour({ delivered: 8, latencyMs: { p50: 20, p95: 40 } }),
        hour({ delivered: 1, failedAttempts: 1, dead: 1, latencyMs: { p50: 30, p95: 90 } }),
        hour({}),
      ),
    ),
    { delivered: 9, failedAttempts: 1, dead: 1, success: 0.9, p95Ms: 90 },
  );
});

test('nothing sent is no rate at all', () => {
  assert.equal(healthOf(usage(hour({}))).success, null);
});

test('a share is rounded down: 100 % means that nothing failed', () => {
  assert.deepEqual([1, 0.99999, 0.983, 0.5, 0].map(percent), ['100 %', '99.9 %', '98.3 %', '50 %', '0 %']);
});

test('a pause goes before a failure, and tells its reason', () => {
  const active = { state: 'active', pausedAt: null, pausedReason: null, failingSince: null } as const;
  assert.deepEqual(standing(active), { state: 'active', since: null, why: null });
  assert.deepEqual(standing({ ...active, failingSince: 'T1' }), { state: 'failing', since: 'T1', why: null });
  assert.deepEqual(
    standing({ state: 'paused', pausedAt: 'T2', pausedReason: 'Moving', failingSince: 'T1' }),
    { state: 'paused', since: 'T2', why: 'Moving' },
  );
});

test('names of events are shortened by what most have in common', () => {
  assert.deepEqual(['workflow_failed', 'webhook_test', '*'].map(shortEvent), ['failed', 'webhook_test', '*']);
});

test('the last words are those of the newest attempt that failed, whichever delivery it was of', () => {
  const attempt = (at: string, outcome: 'ok' | 'http', message: string) => ({
    lastAttempt: { at, outcome, status: null, message },
  });
  assert.equal(
    lastWords([attempt('1', 'http', 'old'), attempt('3', 'ok', 'fine'), attempt('2', 'http', 'newer')]),
    'newer',
  );
  assert.equal(lastWords([{ lastAttempt: null }]), null);
});
