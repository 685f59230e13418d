/** Descriptions of deliveries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { timingWords } from './deliveries.ts';

test('the time in the queue is separate from the time to respond', () => {
  const timing = { queuedMs: 573, dnsMs: null, connectMs: 1, tlsMs: null, firstByteMs: 3 };
  assert.equal(
    timingWords({ durationMs: 3, timing, status: 200 }),
    '573 ms in the queue, 3 ms to respond (connected at 1 ms, first byte at 3 ms)',
  );
  assert.equal(timingWords({ durationMs: 1_200, timing: null, status: 503 }), '1.2 s to respond');
  assert.equal(
    timingWords({ durationMs: 10_000, timing: null, status: null }),
    '10 s until the attempt failed',
  );
});
