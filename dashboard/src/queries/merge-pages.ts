/** Puts the first page of a list, read again, above what was read further down. */
import type { InfiniteData } from '@tanstack/react-query';

export interface ListPage<Row> {
  items: Row[];
  next: string | null;
  /** How many there are in all, where the service tells. */
  total?: number | null;
}

/** As the query keeps them, each with the cursor that it began at. */
export type Pages<Row> = InfiniteData<ListPage<Row>, string | undefined>;

/** The rows that a page has pushed out of itself go to the top of the rest; of those that it has lost, none is kept. */
export function merged<Row>(
  list: Pages<Row>,
  {
    first,
    single,
    idOf,
  }: { first: ListPage<Row>; single: ReadonlyMap<string, Row>; idOf: (row: Row) => string },
): Pages<Row> {
  const fresh = new Set(first.items.map(idOf));
  const before = list.pages.flatMap(({ items }) => items);
  const lastShared = before.findLastIndex((row) => fresh.has(idOf(row)));
  // Nothing in common: more is new than a page holds, and what lies between is not known.
  if (lastShared < 0) return { pages: [first], pageParams: [undefined] };
  const rest = before
    .slice(lastShared + 1)
    .filter((row) => !fresh.has(idOf(row)))
    .map((row) => single.get(idOf(row)) ?? row);
  const last = list.pages.at(-1);
  return {
    // Two pages: what is read again each time, and the rest, which reading on goes on from.
    pages: [first, { items: rest, next: last?.next ?? null }],
    pageParams: [undefined, first.next ?? undefined],
  };
}
