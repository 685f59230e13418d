/** The rules that decide what happens to a job next. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { afterCrash, afterFailure, FAILURE_REASONS, MAX_CRASHES } from './job.ts';

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
