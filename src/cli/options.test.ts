/** Values of flags: moments in all their forms. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { momentFrom } from './options.ts';

// A Wednesday.
const NOW = Date.parse('2026-11-25T10:30:00.000Z');
const momentOf = (text: string) => {
  const moment = momentFrom('--since', text, NOW);
  return moment instanceof Date ? moment.toISOString() : moment;
};

test('a moment is a version, a time, a period, or a day that begins at midnight UTC', () => {
  for (const [text, expected] of [
    ['0', 0],
    ['17', 17],
    ['2026-11-17', '2026-11-17T00:00:00.000Z'],
    ['2026-11-17T08:00+01:00', '2026-11-17T07:00:00.000Z'],
    ['12h', '2026-11-24T22:30:00.000Z'],
    ['7d ago', '2026-11-18T10:30:00.000Z'],
    ['today', '2026-11-25T00:00:00.000Z'],
    ['Yesterday', '2026-11-24T00:00:00.000Z'],
    ['tuesday', '2026-11-24T00:00:00.000Z'],
    ['last Tuesday', '2026-11-24T00:00:00.000Z'],
    ['thu', '2026-11-19T00:00:00.000Z'],
    ['wednesday', '2026-11-25T00:00:00.000Z'],
    ['last wednesday', '2026-11-18T00:00:00.000Z'],
  ] as const) {
    assert.equal(momentOf(text), expected, text);
  }
  assert.equal(momentFrom('--until', undefined, NOW), undefined);
});

test('another text is refused, with the nearest word', () => {
  for (const text of ['', 'x', '-1', '2026-13-01', 'next week', '999999999d']) {
    assert.throws(() => momentOf(text), /--since must be a version, a time such as/, text);
  }
  assert.throws(() => momentOf('2026-02-30'), /found "2026-02-30": there is no day 2026-02-30$/);
  assert.throws(() => momentOf('last tuesdy'), /Did you mean tuesday\?/);
});
