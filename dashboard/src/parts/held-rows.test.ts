/** Rows that stay where they are while one reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold } from './held-rows.ts';

const rows = (text: string) => text.split(' ').map((each) => ({ id: each.charAt(0), all: each }));
const shownAs = (held: string, now: string) => {
  const { shown, waiting } = hold(rows(held), rows(now), ({ id }) => id);
  return [shown.map(({ all }) => all).join(' '), waiting];
};

test('rows that come above wait, and are counted', () => {
  assert.deepEqual(shownAs('c b a', 'e d c b a'), ['c b a', 2]);
});

test('rows that come below are shown', () => {
  assert.deepEqual(shownAs('c b', 'd c b a'), ['c b a', 1]);
});

test('rows are brought up to date where they stand, and those that are gone stay', () => {
  assert.deepEqual(shownAs('c b a', 'c2 a2'), ['c2 b a2', 0]);
});

test('nothing is held of an empty list', () => {
  assert.deepEqual(
    hold<string>([], ['a'], (row) => row),
    { shown: ['a'], waiting: 0 },
  );
});
