/** Health of a webhook, reasons for waiting, and polling of a replay. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Usage, UsageBucket, WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { healthOf, lastFailure, percent, pollAfterMs, shortEvent, standing, waitOf } from './health.ts';

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

test('adds up the hours, and takes the latency of the latest hour that has one', () => {
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

test('has no success rate without attempts', () => {
  assert.equal(healthOf(usage(hour({}))).success, null);
});

test('rounds percentages down, so that 100% means no failures', () => {
  assert.deepEqual([1, 0.99999, 0.983, 0.5, 0].map(percent), ['100%', '99.9%', '98.3%', '50%', '0%']);
});

test('reports a pause and its reason before a failure', () => {
  const active = { state: 'active', pausedAt: null, pausedReason: null, failingSince: null } as const;
  assert.deepEqual(standing(active), { state: 'active', since: null, why: null });
  assert.deepEqual(standing({ ...active, failingSince: 'T1' }), { state: 'failing', since: 'T1', why: null });
  assert.deepEqual(
    standing({ state: 'paused', pausedAt: 'T2', pausedReason: 'Moving', failingSince: 'T1' }),
    { state: 'paused', since: 'T2', why: 'Moving' },
  );
});

test('shortens event types by their common prefix', () => {
  assert.deepEqual(['workflow_failed', 'webhook_test', '*'].map(shortEvent), ['failed', 'webhook_test', '*']);
});

test('finds the message of the latest failed attempt of all deliveries', () => {
  const attempt = (at: string, outcome: 'ok' | 'http', message: string) => ({
    lastAttempt: { at, outcome, status: null, message },
  });
  assert.equal(
    lastFailure([attempt('1', 'http', 'old'), attempt('3', 'ok', 'fine'), attempt('2', 'http', 'newer')]),
    'newer',
  );
  assert.equal(lastFailure([{ lastAttempt: null }]), null);
});

const NOW = Date.parse('2026-11-21T10:05:00.000Z');
const PAST = '2026-11-21T10:04:00.000Z';
const SOON = '2026-11-21T10:08:00.000Z';
const LATE = '2026-11-21T10:30:00.000Z';
const CLOSED: WebhookDetail['breaker'] = { state: 'closed', since: null, nextAttemptAt: null, reason: null };
const OPEN: WebhookDetail['breaker'] = {
  state: 'open',
  since: '2026-11-21T10:03:00.000Z',
  nextAttemptAt: SOON,
  reason: 'The endpoint has failed 12 times in a row',
};
const settings = { ordered: false, ratePerSecond: null, timeoutMs: 15_000, headers: [] };
const well = { state: 'active', settings, breaker: CLOSED, failingSince: null } as const;
const fresh = { state: 'waiting', nextAttemptAt: PAST, lastAttempt: null } as const;

test('has no reason to wait for a delivery that is sent now', () => {
  assert.equal(waitOf(fresh, well, NOW), undefined);
  assert.equal(waitOf(fresh, undefined, NOW), undefined);
  assert.equal(waitOf({ ...fresh, state: 'delivered' }, { ...well, state: 'paused' }, NOW), undefined);
});

test('waits for the scheduled time of a retry', () => {
  assert.deepEqual(waitOf({ ...fresh, nextAttemptAt: LATE }, well, NOW), { why: null, at: LATE });
});

test('waits for the later of the retry and the backoff of the endpoint', () => {
  const held = { ...well, breaker: OPEN, failingSince: PAST };
  assert.deepEqual(waitOf(fresh, held, NOW), { why: OPEN.reason, at: SOON });
  assert.deepEqual(waitOf({ ...fresh, nextAttemptAt: LATE }, held, NOW), { why: OPEN.reason, at: LATE });
});

test('gives a pause, the order of deliveries and a rate limit as reasons', () => {
  assert.match(waitOf(fresh, { ...well, state: 'paused', breaker: OPEN }, NOW)?.why ?? '', /paused/);
  const ordered = { ...well, settings: { ...settings, ordered: true } };
  assert.equal(waitOf(fresh, ordered, NOW), undefined);
  const behind = { ...ordered, failingSince: PAST, breaker: { ...CLOSED, nextAttemptAt: LATE } };
  assert.equal(waitOf(fresh, behind, NOW)?.at, LATE);
  const rated = { ...well, settings: { ...settings, ratePerSecond: 0.5 } };
  assert.match(waitOf(fresh, rated, NOW)?.why ?? '', /0\.5 requests per second/);
});

const replay = { state: 'done', outcome: { underWay: 1 } } as const;

test('polls a slow replay less often, and stops when it has ended', () => {
  assert.equal(pollAfterMs({ replay, tookMs: 0, polls: 1 }), 1_000);
  assert.equal(pollAfterMs({ replay, tookMs: 0, polls: 60 }), 5_000);
  assert.equal(pollAfterMs({ replay: undefined, tookMs: 10, polls: 0 }), 1_010);
  // Polling may keep the service busy for at most a sixth of the time.
  assert.equal(pollAfterMs({ replay, tookMs: 430, polls: 1 }), 430 + 5 * 430);
  assert.equal(pollAfterMs({ replay, tookMs: 2_000, polls: 60 }), 12_000);
  assert.equal(pollAfterMs({ replay: { ...replay, outcome: { underWay: 0 } }, tookMs: 0, polls: 1 }), false);
});
