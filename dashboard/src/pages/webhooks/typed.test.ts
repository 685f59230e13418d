/** Headers and URLs as users type them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersFrom, urlRemark } from './typed.ts';

test('parses one header per line, with colons in the value, and skips empty lines', () => {
  assert.deepEqual(headersFrom('x-receiver: alarms\n\n authorization:Bearer a:b \n'), {
    'x-receiver': 'alarms',
    authorization: 'Bearer a:b',
  });
});

test('names a line that is not a header', () => {
  assert.throws(() => headersFrom('ok: 1\nnothing'), /“nothing” is not a header/);
  assert.throws(() => headersFrom(': value'), /is not a header/);
});

test('rejects anything but an http or https URL', () => {
  for (const text of ['example.com', 'ftp://example.com', 'https://', 'mailto:ada@example.com']) {
    assert.ok(urlRemark(text).mistake, text);
  }
  assert.ok(urlRemark(`https://example.com/${'a'.repeat(2_048)}`).mistake);
});

test('warns about some valid URLs', () => {
  assert.deepEqual(urlRemark(''), {});
  assert.deepEqual(urlRemark('https://example.com/hook'), {});
  assert.match(urlRemark('http://example.com/hook').hint ?? '', /TLS/);
  assert.match(urlRemark('http://127.0.0.1:9000').hint ?? '', /machine/);
});
