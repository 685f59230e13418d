/** Merging a refetched first page into a list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ListPage, merged, type Pages } from './list.ts';

interface Row {
  id: number;
  state?: string;
}

const idOf = ({ id }: Row) => String(id);
const page = (ids: number[], next: string | null): ListPage<Row> => ({
  items: ids.map((id) => ({ id })),
  next,
});
const list: Pages<Row> = {
  pages: [page([9, 8, 7], 'a'), page([6, 5, 4], 'b')],
  pageParams: [undefined, 'a'],
};
const idsOf = ({ pages }: Pages<Row>) => pages.flatMap(({ items }) => items.map(({ id }) => id));

test('puts new rows on top and keeps the rows that they pushed off the first page', () => {
  const now = merged(list, { first: page([11, 10, 9], 'c'), single: new Map(), idOf });
  assert.deepEqual(idsOf(now), [11, 10, 9, 8, 7, 6, 5, 4]);
  assert.equal(now.pages.at(-1)?.next, 'b');
});

test('drops rows that disappeared from the first page', () => {
  const now = merged(list, { first: page([10, 9, 7], 'c'), single: new Map(), idOf });
  assert.deepEqual(idsOf(now), [10, 9, 7, 6, 5, 4]);
});

test('updates a row further down in its place', () => {
  const single = new Map([['5', { id: 5, state: 'finished' }]]);
  const now = merged(list, { first: page([9, 8, 7], 'a'), single, idOf });
  assert.deepEqual(now.pages[1]?.items, [{ id: 6 }, { id: 5, state: 'finished' }, { id: 4 }]);
});

test('starts over when the first page has no row in common with the list', () => {
  const now = merged(list, { first: page([99, 98, 97], 'z'), single: new Map(), idOf });
  assert.deepEqual([idsOf(now), now.pages.length, now.pages[0]?.next], [[99, 98, 97], 1, 'z']);
});
