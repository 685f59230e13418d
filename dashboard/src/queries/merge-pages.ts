/** Merges the first page of a list, fetched again, with the pages that were loaded before. */
import type { InfiniteData } from '@tanstack/react-query';

export interface ListPage<Row> {
  items: Row[];
  next: string | null;
  /** How many there are in all, where the service tells. */
  total?: number | null;
}

/** As the query keeps them, each with the cursor that it began at. */
export type Pages<Row> = InfiniteData<ListPage<Row>, string | undefined>;

/** Rows that new ones have pushed off the first page head the rest; rows that have vanished from it are dropped. */
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
  // No row in common: more than a page is new, and the rows in between are unknown.
  if (lastShared < 0) return { pages: [first], pageParams: [undefined] };
  const rest = before
    .slice(lastShared + 1)
    .filter((row) => !fresh.has(idOf(row)))
    .map((row) => single.get(idOf(row)) ?? row);
  const last = list.pages.at(-1);
  return {
    // Two pages: the one that is fetched again each time, and the rest, from whose cursor loading continues.
    pages: [first, { items: rest, next: last?.next ?? null }],
    pageParams: [undefined, first.next ?? undefined],
  };
}
