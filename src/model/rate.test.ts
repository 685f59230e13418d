/** Rates as people write them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRate } from './load-limit.ts';

test('a rate is a number of things and a time', () => {
  assert.deepEqual(parseRate('600/1m'), { count: 600, windowMs: 60_000 });
  assert.deepEqual(parseRate('10/s'), { count: 10, windowMs: 1_000 });
  assert.deepEqual(parseRate('1000000/24h'), { count: 1_000_000, windowMs: 86_400_000 });
});

test('what is no rate, or none within a second and a day, is nothing', () => {
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
