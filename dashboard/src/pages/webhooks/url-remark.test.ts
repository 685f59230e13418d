/** What is said of an address before it is subscribed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { urlRemark } from './url-remark.ts';

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
