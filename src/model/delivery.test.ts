/** The rules that decide what follows an attempt to deliver. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterAttempt, RETRY_SCHEDULE_MS } from './delivery.ts';

const attempt = {
  outcome: 'http',
  status: 500,
  attempt: 1,
  nowMs: 1_000,
  random: 0,
  retryAfterMs: null,
} as const;

test('only 2xx is a success', () => {
  assert.deepEqual(afterAttempt({ ...attempt, outcome: 'ok', status: 204 }), { state: 'delivered' });
  for (const status of [301, 304, 400, 404, 429, 500, 503]) {
    assert.equal(afterAttempt({ ...attempt, status }).state, 'waiting', String(status));
  }
});

test('an SMTP server that refuses a mail permanently (5xx) ends it, and all other failures of mails are retried', () => {
  const mail = (outcome: 'smtp' | 'connect' | 'timeout' | 'tls', status: number | null) =>
    afterAttempt({ ...attempt, outcome, status }).state;
  assert.deepEqual(
    [500, 550, 552, 554, 571].map((status) => mail('smtp', status)),
    Array(5).fill('dead'),
  );
  assert.deepEqual(
    [421, 450, 451, 452, 503].map((status) => mail('smtp', status)),
    Array(5).fill('waiting'),
  );
  // The wrong password of the operator says nothing about a mail.
  assert.deepEqual([mail('connect', 535), mail('tls', 454), mail('timeout', null)], Array(3).fill('waiting'));
});

test('410 cancels the delivery', () => {
  assert.deepEqual(afterAttempt({ ...attempt, status: 410 }), { state: 'canceled' });
});

test('retries follow the schedule, never early and at most 20 % late, and then the delivery is dead', () => {
  for (let made = 1; made < RETRY_SCHEDULE_MS.length; made++) {
    const wait = RETRY_SCHEDULE_MS[made] ?? 0;
    assert.deepEqual(afterAttempt({ ...attempt, attempt: made }), { state: 'waiting', nextAt: 1_000 + wait });
    assert.deepEqual(afterAttempt({ ...attempt, attempt: made, random: 1 }), {
      state: 'waiting',
      nextAt: 1_000 + wait * 1.2,
    });
  }
  assert.deepEqual(afterAttempt({ ...attempt, attempt: RETRY_SCHEDULE_MS.length }), { state: 'dead' });
});

test('Retry-After makes a delay longer, up to an hour, and never shorter', () => {
  const wait = RETRY_SCHEDULE_MS[1] ?? 0;
  for (const [retryAfterMs, waitMs] of [
    [1_000, wait],
    [60_000, 60_000],
    [86_400_000, 3_600_000],
  ] as const) {
    const next = afterAttempt({ ...attempt, status: 503, retryAfterMs });
    assert.deepEqual(next, { state: 'waiting', nextAt: 1_000 + waitMs });
  }
});
