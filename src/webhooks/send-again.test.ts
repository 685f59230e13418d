/** What is said about a test event. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testWords } from './replay.ts';

const reason = 'The endpoint has failed 10 times in a row';

test('a test that waits is told until when, and one that is over and asked for again is not', () => {
  const nextAttemptAt = '2026-11-20T10:00:00.000Z';
  assert.equal(
    testWords({ state: 'active' }, { reason, nextAttemptAt }),
    `The test waits. ${reason}; the next attempt goes out at ${nextAttemptAt}`,
  );
  assert.equal(
    testWords({ state: 'active' }, { reason, nextAttemptAt: null }),
    `The test does not wait any more. ${reason}`,
  );
});
