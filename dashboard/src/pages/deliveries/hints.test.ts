/** What is advised when an attempt has failed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hintFor } from './hints.ts';

test('says what the service itself does about a status: 410 unsubscribes, redirects are not followed', () => {
  assert.match(hintFor({ outcome: 'http', status: 410 }) ?? '', /unsubscribed/);
  assert.match(hintFor({ outcome: 'http', status: 302 }) ?? '', /not followed/);
  assert.equal(hintFor({ outcome: 'ok', status: 204 }), undefined);
});
