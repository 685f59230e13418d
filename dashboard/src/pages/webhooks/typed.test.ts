/** Headers of a webhook as they are typed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headersFrom, urlRemark } from './typed.ts';

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

test('what is no URL of http or https is refused while it is typed', () => {
  for (const text of ['example.com', 'ftp://example.com', 'https://', 'mailto:ada@example.com']) {
    assert.ok(urlRemark(text).mistake, text);
  }
  assert.ok(urlRemark(`https://example.com/${'a'.repeat(2_048)}`).mistake);
});

test('a URL may be right and still deserve a remark', () => {
  assert.deepEqual(urlRemark(''), {});
  assert.deepEqual(urlRemark('https://example.com/hook'), {});
  assert.match(urlRemark('http://example.com/hook').hint ?? '', /TLS/);
  assert.match(urlRemark('http://127.0.0.1:9000').hint ?? '', /machine/);
});
