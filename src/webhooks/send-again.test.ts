/** The message about a test event. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testWords } from './replay.ts';

const reason = 'The endpoint has failed 10 times in a row';

test('says when a waiting test is sent, and when a repeated test is over', () => {
  const nextAttemptAt = '2026-11-20T10:00:00.000Z';
  assert.equal(
    testWords({ state: 'active' }, { reason, nextAttemptAt }),
    `The test is waiting. ${reason}. Next attempt: ${nextAttemptAt}`,
  );
  assert.equal(
    testWords({ state: 'active' }, { reason, nextAttemptAt: null }),
    `The test is no longer waiting. ${reason}`,
  );
});
