/** Times in words, at their boundaries and from a server whose clock is ahead. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agoWords, elapsedWords, relativeWords } from './times.ts';

const NOW = Date.parse('2026-11-23T12:00:00.000Z');
const iso = (ms: number) => new Date(NOW + ms).toISOString();
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

test('a relative time has one unit, rounded down', () => {
  for (const [ms, words] of [
    [0, '1 s'],
    [59_000, '59 s'],
    [MINUTE, '1 min'],
    [59 * MINUTE, '59 min'],
    [DAY - MINUTE, '23 h'],
    [DAY, '1 day'],
    [2 * DAY, '2 days'],
  ] as const) {
    assert.equal(relativeWords(iso(-ms), NOW), `${words} ago`);
    if (ms > 0) assert.equal(relativeWords(iso(ms), NOW), `in ${words}`);
  }
});

test('a time in the past is never in the future, even if the clock of the server is ahead', () => {
  assert.equal(agoWords(iso(5_000), NOW), '1 s ago');
  assert.equal(agoWords(iso(-3 * MINUTE), NOW), '3 min ago');
  assert.equal(elapsedWords(iso(5_000), NOW), '0 ms');
});
