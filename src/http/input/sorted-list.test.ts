/** Pages of a sorted list are the pages of all its rows, sorted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sorting } from './sorted-list.ts';

interface Row {
  id: string;
  size: number | null;
}

const sorting = new Sorting<Row, 'size'>('wh', { size: ({ size }) => size });
const rows = Array.from({ length: 1_000 }, (_, n): Row => {
  return { id: `wh_${String((n * 7) % 1_000).padStart(4, '0')}`, size: n % 5 === 0 ? null : (n * 37) % 90 };
});

async function* inTurn(): AsyncGenerator<Row, void> {
  yield* rows;
}

for (const sort of ['size', '-size'] as const) {
  test(`the pages by ${sort} contain each of many rows once, in order`, async () => {
    const found: Row[] = [];
    for (let query = `sort=${sort}`; ; ) {
      const page = await sorting.first(inTurn(), { sort, after: sorting.order.from(query), limit: 70 });
      found.push(...page);
      const last = page.at(-1);
      if (last === undefined) break;
      query = `sort=${sort}&cursor=${sorting.order.of(last, query)}`;
    }
    const direction = sort === 'size' ? 1 : -1;
    const none = direction * Number.POSITIVE_INFINITY;
    const wanted = rows.toSorted((one, other) => {
      const [a, b] = [one.size ?? none, other.size ?? none];
      return a === b ? (one.id < other.id ? -1 : 1) : direction * (a - b);
    });
    assert.deepEqual(found, wanted);
  });
}
