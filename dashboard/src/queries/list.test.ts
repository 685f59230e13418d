/** Pages of a list whose first one was read again. */
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

test('what is new goes on top, and nothing is lost that the first page pushed out', () => {
  const now = merged(list, { first: page([11, 10, 9], 'c'), single: new Map(), idOf });
  assert.deepEqual(idsOf(now), [11, 10, 9, 8, 7, 6, 5, 4]);
  assert.equal(now.pages.at(-1)?.next, 'b');
});

test('what the first page has lost is gone', () => {
  const now = merged(list, { first: page([10, 9, 7], 'c'), single: new Map(), idOf });
  assert.deepEqual(idsOf(now), [10, 9, 7, 6, 5, 4]);
});

test('a row further down is brought up to date where it is', () => {
  const single = new Map([['5', { id: 5, state: 'finished' }]]);
  const now = merged(list, { first: page([9, 8, 7], 'a'), single, idOf });
  assert.deepEqual(now.pages[1]?.items, [{ id: 6 }, { id: 5, state: 'finished' }, { id: 4 }]);
});

test('a list that has nothing in common any more begins anew', () => {
  const now = merged(list, { first: page([99, 98, 97], 'z'), single: new Map(), idOf });
  assert.deepEqual([idsOf(now), now.pages.length, now.pages[0]?.next], [[99, 98, 97], 1, 'z']);
});
