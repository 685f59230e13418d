/** Where the time of an attempt went. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hintFor, phasesOf, usedOpenConnection } from './attempt.ts';

const timing = { queuedMs: 5, dnsMs: 2, connectMs: 12, tlsMs: 40, firstByteMs: 90 };

test('each phase begins where the one before ended, after the wait for its turn', () => {
  assert.deepEqual(
    phasesOf({ durationMs: 95, timing }).map(({ name, fromMs, toMs }) => [name, fromMs, toMs]),
    [
      ['Waited for its turn', 0, 5],
      ['Name looked up', 5, 7],
      ['Connected', 7, 17],
      ['TLS handshake', 17, 45],
      ['Answer began', 45, 95],
      ['Answer read', 95, 100],
    ],
  );
});

test('what did not come to pass is left out, and the rest is where it failed', () => {
  const failed = { queuedMs: 0, dnsMs: 3, connectMs: null, tlsMs: null, firstByteMs: null };
  assert.deepEqual(
    phasesOf({ durationMs: 1_000, timing: failed }).map(({ name, fromMs, toMs }) => [name, fromMs, toMs]),
    [
      ['Waited for its turn', 0, 0],
      ['Name looked up', 0, 3],
      ['Then it failed', 3, 1_000],
    ],
  );
  assert.deepEqual(phasesOf({ durationMs: 1, timing: null }), []);
});

test('a connection that was open is told from one that had to be made', () => {
  assert.equal(
    usedOpenConnection({ timing: { ...timing, dnsMs: null, connectMs: null, tlsMs: null } }),
    true,
  );
  assert.equal(usedOpenConnection({ timing }), false);
});

test('says what the service itself does about a status: 410 unsubscribes, redirects are not followed', () => {
  assert.match(hintFor({ outcome: 'http', status: 410 }) ?? '', /unsubscribed/);
  assert.match(hintFor({ outcome: 'http', status: 302 }) ?? '', /not followed/);
  assert.equal(hintFor({ outcome: 'ok', status: 204 }), undefined);
});
