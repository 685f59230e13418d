/** Pages of lists: the parameters, the cursors, one page and the `link` to the next, the schema of the answer. */
import { Problem } from '../../model/error.ts';
import { ownTurn } from '../../std/fair-share.ts';
import { everyRow, type Page } from '../../store/page.ts';
import { requestTime } from '../openapi/content.ts';
import type { Call, KeyedCall, Parameter } from '../route.ts';
import { queryNumber, queryValue, workflowIdFrom } from './values.ts';

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

/** A cursor that holds some whole numbers. */
export function makeCursor(numbers: readonly number[]): string {
  return Buffer.from(JSON.stringify(numbers)).toString('base64url');
}

/**
 * The numbers in the query's cursor; undefined without one.
 *
 * @param lengths how many numbers a cursor of this operation may hold
 * @throws Problem `field_invalid` when this operation cannot have made it
 */
export function cursorFrom(query: string, lengths: readonly number[]): number[] | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const numbers = parse(text);
  if (numbers === undefined || !lengths.includes(numbers.length)) refuse();
  return numbers;
}

/** A cursor that holds an id: the last of a page. */
export function makeIdCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/**
 * The id in the query's cursor; undefined without one.
 *
 * @param isId whether a list of this operation can hold it
 * @throws Problem `field_invalid` when this operation cannot have made it
 */
export function idCursorFrom(query: string, isId: (text: string) => boolean): string | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const id = Buffer.from(text, 'base64url').toString();
  // Decoding tolerates characters that encoding never writes.
  if (makeIdCursor(id) !== text || !isId(id)) refuse();
  return id;
}

/** A `link` header to the same request with another cursor. @param name of the parameter that holds it */
export function nextLink(path: string, query: string, cursor: string, name = 'cursor'): string {
  const others = query.split('&').filter((pair) => pair !== '' && nameOf(pair) !== name);
  return `<${path}?${[...others.map(uriSafe), `${name}=${cursor}`].join('&')}>; rel="next"`;
}

/** The name of a `name=value` pair, percent-decoded. */
function nameOf(pair: string): string {
  const [name = ''] = pair.split('=');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Encodes characters of a raw query that must not stand between `<` and `>`. */
function uriSafe(pair: string): string {
  return pair.replace(/[^\w\-.~!$'()*+,;:@/?%=]/g, (character) => encodeURIComponent(character));
}

function refuse(): never {
  throw new Problem('field_invalid', {
    sentence:
      'The query parameter `cursor` must be one that this operation gave, with the same other parameters. ' +
      'Leave it out to begin at the start',
  });
}

function parse(text: string): number[] | undefined {
  if (text.length > 200) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const isCursor = Array.isArray(value) && value.every((one) => Number.isSafeInteger(one) && one >= 0);
    return isCursor ? value : undefined;
  } catch {
    return undefined;
  }
}

export const WORKFLOW_FILTER: Parameter = {
  name: 'workflowId',
  in: 'query',
  description: 'Only of this workflow',
  schema: { type: 'string' },
};

/**
 * The filter as an input of the store; empty when the query names no workflow.
 *
 * @throws Problem `workflow_not_found`
 */
export async function workflowFilter({
  services,
  caller,
  query,
}: Pick<KeyedCall, 'services' | 'caller' | 'query'>): Promise<{ workflowId?: string }> {
  const value = queryValue(query, 'workflowId');
  if (value === undefined) return {};
  const workflowId = workflowIdFrom(value);
  const workflow = await services.store.workflows.get({ teamId: caller.teamId, id: workflowId });
  if (workflow === undefined) throw new Problem('workflow_not_found');
  return { workflowId };
}
