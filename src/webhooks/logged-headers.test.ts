/** Headers in the log of an attempt. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loggedRequest, loggedResponse } from './destination.ts';

function many(count: number, length = 1): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v'.repeat(length)]));
}

test('the log contains no credentials, and only the names of custom headers', () => {
  const sent = { host: 'a.example', authorization: 'Basic x', 'x-key': 'secret', 'webhook-id': 'evt_1' };
  assert.deepEqual(loggedRequest(sent, { 'X-Key': 'secret' }), {
    host: 'a.example',
    authorization: '***',
    'x-key': '***',
    'webhook-id': 'evt_1',
  });
});

test('the log contains at most 50 names and 4,096 characters of response headers', () => {
  assert.deepEqual(loggedResponse({ a: 'b', 'set-cookie': ['c', 'd'], nul: '\0' }), {
    a: 'b',
    'set-cookie': 'c, d',
    nul: '\ufffd',
  });
  assert.equal(Object.keys(loggedResponse(many(60))).length, 50);
  const logged = loggedResponse({ ...many(3, 2_000), last: 'x' });
  const text = Object.entries(logged).flat().join('');
  assert.equal(text.length, 4_096);
  assert.equal(logged.last, undefined);
});
