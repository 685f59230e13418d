/** Deliveries in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timingWords } from './deliveries.ts';

test('what an attempt took is told apart from how long it waited before', () => {
  const timing = { queuedMs: 573, dnsMs: null, connectMs: 1, tlsMs: null, firstByteMs: 3 };
  assert.equal(
    timingWords({ durationMs: 3, timing }),
    '3 ms after waiting 573 ms: connection 1 ms, first byte 3 ms',
  );
  assert.equal(timingWords({ durationMs: 1_200, timing: null }), '1.2 s');
});
