/** Phases and advice of an attempt. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hintFor, phasesOf, reusedConnection, timingWords } from './attempt.ts';

const timing = { queuedMs: 5, dnsMs: 2, connectMs: 12, tlsMs: 40, firstByteMs: 90 };

test('starts each phase at the end of the previous one', () => {
  assert.deepEqual(
    phasesOf({ durationMs: 95, timing }).map(({ name, fromMs, toMs }) => [name, fromMs, toMs]),
    [
      ['Queue', 0, 5],
      ['DNS lookup', 5, 7],
      ['Connection', 7, 17],
      ['TLS handshake', 17, 45],
      ['First byte', 45, 95],
      ['Response body', 95, 100],
    ],
  );
});

test('leaves out phases that did not happen, and ends with the failure', () => {
  const failed = { queuedMs: 0, dnsMs: 3, connectMs: null, tlsMs: null, firstByteMs: null };
  assert.deepEqual(
    phasesOf({ durationMs: 1_000, timing: failed }).map(({ name, fromMs, toMs }) => [name, fromMs, toMs]),
    [
      ['Queue', 0, 0],
      ['DNS lookup', 0, 3],
      ['Until failure', 3, 1_000],
    ],
  );
  assert.deepEqual(phasesOf({ durationMs: 1, timing: null }), []);
});

test('summarizes the time in the queue and at the receiver', () => {
  assert.equal(timingWords({ durationMs: 3, timing }), '5 ms in the queue, 3 ms to respond');
  const failed = { ...timing, firstByteMs: null };
  assert.equal(
    timingWords({ durationMs: 1_500, timing: failed }),
    '5 ms in the queue, 1.5 s until it failed',
  );
  assert.equal(timingWords({ durationMs: 3, timing: null }), '3 ms');
});

test('distinguishes a reused connection from a new one', () => {
  const reused = { ...timing, dnsMs: null, connectMs: null, tlsMs: null };
  assert.equal(reusedConnection({ timing: reused }), true);
  assert.equal(reusedConnection({ timing }), false);
});

test('explains how the service reacts to a status', () => {
  assert.match(hintFor({ outcome: 'http', status: 410 }) ?? '', /unsubscribed/);
  assert.match(hintFor({ outcome: 'http', status: 302 }) ?? '', /not followed/);
  assert.equal(hintFor({ outcome: 'ok', status: 204 }), undefined);
  assert.match(hintFor({ outcome: 'smtp', status: 450 }) ?? '', /retried/);
  assert.match(hintFor({ outcome: 'smtp', status: 550 }) ?? '', /Check the address/);
});
