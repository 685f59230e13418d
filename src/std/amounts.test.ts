/** Amounts and durations in words, at the boundaries between units. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesWords, countWords, durationWords } from './amounts.ts';

test('a duration has at most two units, and the smaller unit never reaches the larger', () => {
  const words = [
    -5, 999.4, 999.6, 9_940, 59_400, 59_600, 200_000, 3_599_600, 7_500_000, 86_400_000, 273_600_000,
  ];
  assert.deepEqual(words.map(durationWords), [
    '0 ms',
    '999 ms',
    '1 s',
    '9.9 s',
    '59 s',
    '1 min',
    '3 min 20 s',
    '1 h',
    '2 h 5 min',
    '1 day',
    '3 days 4 h',
  ]);
});

test('bytes have two or three digits and a suitable unit', () => {
  const words = [0, 812, 3_449, 120_400_000, 999_600, 5e15].map(bytesWords);
  assert.deepEqual(words, ['0 B', '812 B', '3.4 kB', '120 MB', '1 MB', '5000 TB']);
});

test('a count is grouped, and its noun has a plural', () => {
  const words = [0, 1, 12_345, 1_234_567].map((count) => countWords(count, 'record'));
  assert.deepEqual(words, ['0 records', '1 record', '12,345 records', '1,234,567 records']);
});
