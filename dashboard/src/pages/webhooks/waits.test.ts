/** Why a delivery is not sent now. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WebhookDetail } from 'flowhook-client';
import { waitOf } from './waits.ts';

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

test('what is sent at once waits for nothing', () => {
  assert.equal(waitOf(fresh, well, NOW), undefined);
  assert.equal(waitOf(fresh, undefined, NOW), undefined);
  assert.equal(waitOf({ ...fresh, state: 'delivered' }, { ...well, state: 'paused' }, NOW), undefined);
});

test('a retry waits for its time', () => {
  assert.deepEqual(waitOf({ ...fresh, nextAttemptAt: LATE }, well, NOW), { why: null, at: LATE });
});

test('behind an endpoint that is held back, the later of the two times counts', () => {
  const held = { ...well, breaker: OPEN, failingSince: PAST };
  assert.deepEqual(waitOf(fresh, held, NOW), { why: OPEN.reason, at: SOON });
  assert.deepEqual(waitOf({ ...fresh, nextAttemptAt: LATE }, held, NOW), { why: OPEN.reason, at: LATE });
});

test('a pause, an order and a rate are told', () => {
  assert.match(waitOf(fresh, { ...well, state: 'paused', breaker: OPEN }, NOW)?.why ?? '', /paused/);
  const ordered = { ...well, settings: { ...settings, ordered: true } };
  assert.equal(waitOf(fresh, ordered, NOW), undefined);
  const behind = { ...ordered, failingSince: PAST, breaker: { ...CLOSED, nextAttemptAt: LATE } };
  assert.equal(waitOf(fresh, behind, NOW)?.at, LATE);
  const rated = { ...well, settings: { ...settings, ratePerSecond: 0.5 } };
  assert.match(waitOf(fresh, rated, NOW)?.why ?? '', /0\.5 requests a second/);
});
