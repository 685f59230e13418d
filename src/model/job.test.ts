/** The rules that decide what happens to a job next. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  afterCrash,
  afterFailure,
  afterRelease,
  FAILURE_REASONS,
  hasEnded,
  isWaiting,
  JOB_ORIGINS,
  JOB_STATES,
  MAX_CRASHES,
  onCancel,
  unlessCanceled,
} from './job.ts';

const failed = { failures: 1, retries: { max: 2, backoffMs: 5_000 }, nowMs: 1_000, random: 1 };

test('an error and a failing source are tried again with growing waits until the budget is used up', () => {
  for (const reason of ['error', 'source'] as const) {
    assert.deepEqual(afterFailure({ ...failed, reason }), { state: 'retrying', runAt: 6_000 });
    assert.deepEqual(afterFailure({ ...failed, reason, failures: 2 }), { state: 'retrying', runAt: 11_000 });
    assert.deepEqual(afterFailure({ ...failed, reason, failures: 3 }), { state: 'failed' });
  }
});

test('no other reason is tried again', () => {
  for (const reason of FAILURE_REASONS) {
    if (reason === 'error' || reason === 'source') continue;
    assert.deepEqual(afterFailure({ ...failed, reason }), { state: 'failed' }, reason);
  }
});

test('a crash is tried again at once until the budget for crashes is used up', () => {
  const crashed = { origin: 'api', nowMs: 5 } as const;
  assert.deepEqual(afterCrash({ ...crashed, crashes: MAX_CRASHES }), { state: 'retrying', runAt: 5 });
  assert.deepEqual(afterCrash({ ...crashed, crashes: MAX_CRASHES + 1 }), { state: 'failed' });
});

test('a push that crashed is over: its records are gone', () => {
  assert.deepEqual(afterCrash({ origin: 'push', crashes: 1, nowMs: 5 }), { state: 'failed' });
});

test('an attempt that is given back is due at once, unless it is a push', () => {
  for (const origin of JOB_ORIGINS) {
    const then = origin === 'push' ? { state: 'failed' } : { state: 'retrying', runAt: 5 };
    assert.deepEqual(afterRelease({ origin, nowMs: 5 }), then, origin);
  }
});

test('a wish to cancel ends what waits, is noted on what runs, and leaves what has ended', () => {
  assert.deepEqual(
    JOB_STATES.map((state) => [state, onCancel(state)]),
    [
      ['queued', 'canceled'],
      ['running', 'canceling'],
      ['retrying', 'canceled'],
      ['finished', 'ended'],
      ['failed', 'ended'],
      ['canceled', 'ended'],
    ],
  );
});

test('a wish to cancel wins over everything that the attempt comes to', () => {
  const wanted = { cancelRequestedAt: 1 };
  const nowMs = 5;
  const ends = [
    ...FAILURE_REASONS.map((reason) => afterFailure({ ...failed, reason })),
    ...JOB_ORIGINS.map((origin) => afterCrash({ origin, crashes: 1, nowMs })),
    ...JOB_ORIGINS.map((origin) => afterRelease({ origin, nowMs })),
    { state: 'finished' as const },
  ];
  for (const then of ends) {
    assert.deepEqual(unlessCanceled(wanted, then), { state: 'canceled' });
    assert.deepEqual(unlessCanceled({ cancelRequestedAt: null }, then), then);
  }
});

test('only what waits can be brought forward, and every state waits, runs or has ended', () => {
  assert.deepEqual(JOB_STATES.filter(isWaiting), ['queued', 'retrying']);
  assert.deepEqual(JOB_STATES.filter(hasEnded), ['finished', 'failed', 'canceled']);
});
