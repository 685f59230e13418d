/** Pagination, as lists share it: the parameters, reading them, one page, and the schema of the answer. */
import { ownTurn } from '../std/fair-share.ts';
import { everyRow, type Page } from '../store/page.ts';
import { makeIdCursor, nextLink } from './cursor.ts';
import { requestTime } from './openapi/content.ts';
import { queryNumber } from './query.ts';
import type { Call, Parameter } from './route.ts';

/** How many items a page has without `limit`, and at most. */
export interface PageSize {
  usual: number;
  most: number;
}

/** The page size of most lists. */
export const PAGE_SIZE: PageSize = { usual: 100, most: 1_000 };

/** Describes `limit` and `cursor`. */
export function pageParameters({ usual, most }: PageSize = PAGE_SIZE): Parameter[] {
  return [
    {
      name: 'limit',
      in: 'query',
      description: `At most so many, ${usual} by default; \`Link\` leads to the next`,
      schema: { type: 'integer', minimum: 1, maximum: most },
    },
    {
      name: 'cursor',
      in: 'query',
      description: 'From the `Link` of the answer before',
      schema: { type: 'string' },
    },
  ];
}

/** Describes what `queryPeriod` reads. */
export const PERIOD_PARAMETERS: readonly Parameter[] = [
  { name: 'since', in: 'query', description: 'Of this time or later', schema: requestTime },
  { name: 'until', in: 'query', description: 'Of this time or earlier', schema: requestTime },
];

/** How many items the page may have. */
export function pageLimit(query: string, { usual, most }: PageSize = PAGE_SIZE): number {
  return queryNumber(query, 'limit', { least: 1, most }) ?? usual;
}

/**
 * The items of one page; sets a `Link` header to the next one, if there is one.
 *
 * @param found the items from here on: one more than the limit is enough
 */
export function onePage<Item>(
  { query, reply }: Pick<Call, 'query' | 'reply'>,
  found: readonly Item[],
  page: { limit: number; path: string; cursorOf: (last: Item) => string },
): Item[] {
  const items = found.slice(0, page.limit);
  const last = items.at(-1);
  if (found.length > page.limit && last !== undefined) {
    reply.header('link', nextLink(page.path, query, page.cursorOf(last)));
  }
  return items;
}

/** Every row of a list of the store; the pages of all calls take turns, and so do their teams. */
export function everyRowInTurn<Input extends { teamId: string }, Row extends { id: string }>(
  list: (input: Input & Page) => Promise<Row[]>,
  input: Input,
): AsyncGenerator<Row, void> {
  const { teamId } = input;
  return everyRow(async (page: Input & Page) => {
    await ownTurn(teamId);
    return list(page);
  }, input);
}

/** The cursor of lists in the order of ids. */
export function idCursor({ id }: { id: string }): string {
  return makeIdCursor(id);
}
