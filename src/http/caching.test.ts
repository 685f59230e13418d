/** Conditional and range requests, content negotiation, and links to the next page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesTag, rangeOf } from './caching.ts';
import { nextLink } from './input/list-page.ts';
import { acceptedEncoding, acceptedFormat } from './negotiate.ts';

test('matches a weak or strong tag in a list', () => {
  for (const header of ['"a"', 'W/"a"', '"b", "a"', '"b",W/"a"', ' * ', '"a,b", "a"']) {
    assert.ok(matchesTag(header, '"a"'), `${header}`);
  }
  for (const header of [undefined, '', 'a', '"b"', '"a', '"ab"'])
    assert.ok(!matchesTag(header, '"a"'), `${header}`);
});

test('accepts a single range; any other range returns the whole body', () => {
  const body = { tag: '"a"', bytes: 100 };
  const range = (text: string, ifRange?: string) => rangeOf({ range: text, 'if-range': ifRange }, body);
  assert.deepEqual(range('bytes=0-0'), { start: 0, end: 1 });
  assert.deepEqual(range('bytes= 90-200'), { start: 90, end: 100 });
  assert.deepEqual(range('bytes=-200'), { start: 0, end: 100 });
  assert.deepEqual(range('bytes=5-', '"a"'), { start: 5, end: 100 });
  assert.equal(range('bytes=5-', 'W/"a"'), undefined);
  for (const text of [
    'bytes=1-2,3-4',
    'bytes=2-1',
    'bytes=-',
    'bytes=1',
    'bytes=1 0-20',
    'items=1-2',
    `bytes=${'9'.repeat(16)}-`,
  ])
    assert.equal(range(text), undefined, text);
  assert.throws(() => range('bytes=100-'), { code: 'range_not_satisfiable' });
  assert.throws(() => range('bytes=-0'), { code: 'range_not_satisfiable' });
  assert.throws(() => rangeOf({ range: 'bytes=0-' }, { tag: '"a"', bytes: 0 }), {
    code: 'range_not_satisfiable',
  });
});

test('returns uncompressed JSON for malformed preferences', () => {
  for (const header of [undefined, '', ',,;', 'q=1', 'text/csv;q=2', 'text/csv;q=0.0', ';'.repeat(1_000)]) {
    assert.equal(acceptedFormat(header, ['json', 'csv']), 'json', `${header}`);
    assert.equal(acceptedEncoding(header), 'identity', `${header}`);
  }
  assert.equal(acceptedFormat('TEXT/CSV; charset=utf-8', ['json', 'csv']), 'csv');
  assert.equal(acceptedFormat('text/csv', ['json', 'ndjson']), 'json');
  assert.equal(acceptedEncoding('X-Gzip'), 'gzip');
  assert.equal(acceptedEncoding('gzip;q=0, zstd;q=0.1'), 'zstd');
});

test('returns JSON unless another format is preferred to JSON and to every wildcard that matches JSON', () => {
  const formats = ['json', 'ndjson', 'csv'] as const;
  for (const [accept, format] of [
    ['text/csv', 'csv'],
    ['text/csv, application/json;q=0.1', 'csv'],
    ['text/csv;q=0.2, application/json;q=0.1', 'csv'],
    ['text/csv;q=0.2, application/json;q=0', 'csv'],
    ['text/csv;q=0.2, application/json;q=0, */*', 'csv'],
    ['text/csv;q=0.2, application/x-ndjson;q=0.3', 'ndjson'],
    ['text/csv, application/jsonl', 'csv'],
    ['text/csv, */*;q=0.1', 'csv'],
    ['text/csv, application/json', 'json'],
    ['text/csv, */*', 'json'],
    ['text/csv;q=0.4, application/*;q=0.5', 'json'],
    ['text/csv;q=0.3, application/json;q=0.1, */*;q=0.5', 'json'],
    ['text/csv;q=0, application/json;q=0', 'json'],
    ['text/html, */*;q=0.8', 'json'],
  ] as const) {
    assert.equal(acceptedFormat(accept, formats), format, accept);
  }
});

test('a link keeps the other parameters and escapes characters that would end it', () => {
  assert.equal(nextLink('/x', 'a=1&cursor=old&b=">"', 'new'), '</x?a=1&b=%22%3E%22&cursor=new>; rel="next"');
});
