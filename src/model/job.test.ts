/** State transitions of a job. */
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

test('errors and failing sources are retried with growing delays until no retries are left', () => {
  for (const reason of ['error', 'source'] as const) {
    assert.deepEqual(afterFailure({ ...failed, reason }), { state: 'retrying', runAt: 6_000 });
    assert.deepEqual(afterFailure({ ...failed, reason, failures: 2 }), { state: 'retrying', runAt: 11_000 });
    assert.deepEqual(afterFailure({ ...failed, reason, failures: 3 }), { state: 'failed' });
  }
});

test('no other reason is retried', () => {
  for (const reason of FAILURE_REASONS) {
    if (reason === 'error' || reason === 'source') continue;
    assert.deepEqual(afterFailure({ ...failed, reason }), { state: 'failed' }, reason);
  }
});

test('a crash is retried immediately, up to the maximum number of crashes', () => {
  const crashed = { origin: 'api', nowMs: 5 } as const;
  assert.deepEqual(afterCrash({ ...crashed, crashes: MAX_CRASHES }), { state: 'retrying', runAt: 5 });
  assert.deepEqual(afterCrash({ ...crashed, crashes: MAX_CRASHES + 1 }), { state: 'failed' });
});

test('a crashed push fails, because its records are lost', () => {
  assert.deepEqual(afterCrash({ origin: 'push', crashes: 1, nowMs: 5 }), { state: 'failed' });
});

test('a released attempt is due immediately, unless it is a push', () => {
  for (const origin of JOB_ORIGINS) {
    const then = origin === 'push' ? { state: 'failed' } : { state: 'retrying', runAt: 5 };
    assert.deepEqual(afterRelease({ origin, nowMs: 5 }), then, origin);
  }
});

test('canceling ends a waiting job, marks a running one, and ignores an ended one', () => {
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

test('a cancellation request overrides every outcome of the attempt', () => {
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

test('queued and retrying jobs are waiting; finished, failed and canceled jobs have ended', () => {
  assert.deepEqual(JOB_STATES.filter(isWaiting), ['queued', 'retrying']);
  assert.deepEqual(JOB_STATES.filter(hasEnded), ['finished', 'failed', 'canceled']);
});
