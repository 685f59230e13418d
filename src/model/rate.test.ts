/** Parsing of rates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRate } from './load-limit.ts';

test('parses a number of requests per time', () => {
  assert.deepEqual(parseRate('600/1m'), { count: 600, windowMs: 60_000 });
  assert.deepEqual(parseRate('10/s'), { count: 10, windowMs: 1_000 });
  assert.deepEqual(parseRate('1000000/24h'), { count: 1_000_000, windowMs: 86_400_000 });
});

test('rejects other text, and periods shorter than a second or longer than a day', () => {
  for (const text of [
    '',
    '600',
    '0/1m',
    '600/',
    '/1m',
    '600/1d',
    '600/0s',
    '600/500ms',
    '1000001/1m',
    '1/25h',
    '-1/1m',
    '1.5/1m',
    '1 / 1m',
  ]) {
    assert.equal(parseRate(text), undefined, text);
  }
});
