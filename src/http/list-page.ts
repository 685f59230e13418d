/** What operations share that answer a list in pages: the parameters, their reading, and the answer's form. */
import { queryNumber } from './number-query.ts';
import type { Parameter } from './route.ts';
import { jsonResponse } from './schemas.ts';

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

/** How many items a page may have. */
export function pageLimit(query: string): number {
  return queryNumber(query, 'limit', { least: 1, most: MAX_LIMIT }) ?? DEFAULT_LIMIT;
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
