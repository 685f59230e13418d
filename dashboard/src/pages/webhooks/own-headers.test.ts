/** Headers of a webhook as they are typed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersFrom } from './own-headers.ts';

test('a line is a header: its value may hold colons, empty lines are nothing', () => {
  assert.deepEqual(headersFrom('x-receiver: alarms\n\n authorization:Bearer a:b \n'), {
    'x-receiver': 'alarms',
    authorization: 'Bearer a:b',
  });
});

test('what is no header is named', () => {
  assert.throws(() => headersFrom('ok: 1\nnothing'), /“nothing” is no header/);
  assert.throws(() => headersFrom(': value'), /is no header/);
});
