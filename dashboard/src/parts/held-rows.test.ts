/** Rows that stay in place while the user reads. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold } from './held-rows.ts';

const rows = (text: string) => text.split(' ').map((each) => ({ id: each.charAt(0), all: each }));
const shownAs = (held: string, now: string) => {
  const { shown, waiting } = hold(rows(held), rows(now), ({ id }) => id);
  return [shown.map(({ all }) => all).join(' '), waiting];
};

test('counts new rows at the top without showing them', () => {
  assert.deepEqual(shownAs('c b a', 'e d c b a'), ['c b a', 2]);
});

test('shows new rows at the end', () => {
  assert.deepEqual(shownAs('c b', 'd c b a'), ['c b a', 1]);
});

test('updates rows in place and keeps removed ones', () => {
  assert.deepEqual(shownAs('c b a', 'c2 a2'), ['c2 b a2', 0]);
});

test('shows all rows of a list that was empty', () => {
  assert.deepEqual(
    hold<string>([], ['a'], (row) => row),
    { shown: ['a'], waiting: 0 },
  );
});
