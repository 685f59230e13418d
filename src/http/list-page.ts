/** What operations share that answer a list in pages: the parameters, their reading, and the answer's form. */
import { makeIdCursor, nextLink } from './cursor.ts';
import { jsonResponse, requestTime } from './openapi/content.ts';
import { queryNumber } from './query.ts';
import type { Call, Parameter } from './route.ts';

export const DEFAULT_LIMIT = 100;
export const MAX_LIMIT = 1_000;

export const PAGE_PARAMETERS: readonly Parameter[] = [
  {
    name: 'limit',
    in: 'query',
    description: `At most so many, ${DEFAULT_LIMIT} by default; \`Link\` leads to the next`,
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
  },
  {
    name: 'cursor',
    in: 'query',
    description: 'From the `Link` of the answer before',
    schema: { type: 'string' },
  },
];

/** For `queryPeriod`. */
export const PERIOD_PARAMETERS: readonly Parameter[] = [
  { name: 'since', in: 'query', description: 'Of this time or later', schema: requestTime },
  { name: 'until', in: 'query', description: 'Of this time or earlier', schema: requestTime },
];

/** How many items a page may have. */
export function pageLimit(query: string): number {
  return queryNumber(query, 'limit', { least: 1, most: MAX_LIMIT }) ?? DEFAULT_LIMIT;
}

/**
 * The items of one page, with a `Link` to the next one if there is any.
 *
 * @param found what comes from here on: one item more than the page may have is enough
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

/** The cursor of an item that is found by its id. */
export function idCursor({ id }: { id: string }): string {
  return makeIdCursor(id);
}

/**
 * The answer: one list under a name.
 *
 * @param schema the name of what an item is, among the schemas
 */
export function pageResponse(name: string, schema: string): object {
  return jsonResponse(
    `The ${name}`,
    {
      type: 'object',
      required: [name],
      properties: { [name]: { type: 'array', items: { $ref: `#/components/schemas/${schema}` } } },
    },
    { Link: 'With `rel="next"`, when `limit` left something out' },
  );
}
