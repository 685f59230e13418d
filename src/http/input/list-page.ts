/** Paginated lists: parameters, cursors, and the operation. */
import { found, Problem } from '../../model/error.ts';
import { ownTurn } from '../../std/fair-share.ts';
import type { NamedShape } from '../../std/shape.ts';
import { everyRow, type Page } from '../../store/page.ts';
import { pageResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation, Parameter } from '../route.ts';
import {
  type Given,
  numberParameter,
  type QueryParameters,
  queryValue,
  readGiven,
  textParameter,
  timeParameter,
} from './query.ts';
import { isGeneratedId, workflowIdFrom } from './values.ts';

/** Items per page: by default, and at most. */
export interface PageSize {
  usual: number;
  most: number;
}

/** The page size of most lists. */
export const PAGE_SIZE: PageSize = { usual: 100, most: 1_000 };

/** The filters by time. */
export const PERIOD = {
  since: timeParameter('since', 'Only items created at or after this time'),
  until: timeParameter('until', 'Only items created at or before this time'),
};

/** The parameters of a paginated list, and a function that reads `limit`. @param example a cursor */
export function pageParameters(example: string, { usual, most }: PageSize = PAGE_SIZE) {
  const limit = numberParameter('limit', `Maximum number of items per page (default: ${usual})`, {
    least: 1,
    most,
  });
  const cursor = {
    ...textParameter('cursor', 'Cursor from the `Link` header of the previous page'),
    example,
  };
  return { described: [limit, cursor], limitOf: (query: string) => limit.read(query) ?? usual };
}

/**
 * The order of a list: `as` is the name of the position in the input of the store, `of` makes the cursor after a row,
 * and `from` reads a cursor.
 */
export interface Order<Row, As extends string, At> {
  as: As;
  /** @param query of the request; undefined in an example */
  of(last: Row, query?: string): string;
  from(query: string): At | undefined;
}

/** Orders a list by ID. @param isId the prefix of the IDs, or a check */
export function byId<As extends string>(
  as: As,
  isId: string | ((text: string) => boolean),
): Order<{ id: string }, As, string> {
  const fits = typeof isId === 'string' ? (text: string) => isGeneratedId(isId, text) : isId;
  return { as, of: ({ id }) => makeIdCursor(id), from: (query) => idCursorFrom(query, fits) };
}

/** By number, highest first. */
export const byNumber: Order<{ number: number }, 'before', number> = {
  as: 'before',
  of: ({ number }) => makeCursor([number]),
  from: (query) => cursorFrom(query, [1])?.[0],
};

interface List<Row, Json, P, As extends string, At, C extends KeyedCall>
  extends Pick<Operation<KeyedCall>, 'id' | 'group' | 'summary' | 'description' | 'errors'> {
  /** The name of the items in the response. */
  name: string;
  resource: NamedShape<Json, never>;
  order: Order<NoInfer<Row>, As, At>;
  parameters?: readonly Parameter[];
  /** Query parameters that filter the list, by the names of the fields in the input of the store. */
  filters?: P;
  size?: PageSize;
  /**
   * The rows after the position. `limit` is one more than the page size, to find out whether there is a next page. A
   * store that searches a bounded number of rows per page returns `next` itself.
   */
  rows(
    call: C,
    range: Given<P> & { [K in As]?: At } & { limit: number },
  ): Promise<readonly Row[] | { rows: readonly Row[]; next: string | null }>;
  show(row: Row, call: C): Json | Promise<Json>;
}

/** The operation of a paginated list, which responds `{ [name]: [items] }`. */
export function listOperation<
  Row,
  Json,
  As extends string,
  At,
  C extends KeyedCall = KeyedCall,
  const P extends QueryParameters = Record<never, never>,
>(list: List<Row, Json, P, As, At, C>): Operation<C> {
  const { name, resource, order, rows, show, size, parameters = [], errors, ...described } = list;
  const { filters = {} as P, ...operation } = described;
  // The example is JSON and not a row, but both have the same ID or number.
  const page = pageParameters(order.of(resource.example as unknown as Row), size);
  return {
    ...operation,
    parameters: [...parameters, ...Object.values(filters), ...page.described],
    answer: pageResponse(name, resource),
    errors: { field_invalid: 'A parameter has an invalid value', ...errors },

    async handle(call) {
      const { query, path, reply } = call;
      const given = readGiven(query, filters);
      const limit = page.limitOf(query);
      const at = order.from(query);
      const range = { ...given, ...(at === undefined ? {} : { [order.as]: at }), limit: limit + 1 };
      const found = await rows(call, range as Parameters<typeof rows>[1]);
      const { items, next } =
        'rows' in found ? { items: found.rows, next: found.next } : cut(found, limit, { order, query });
      if (next !== null) reply.header('link', nextLink(path, query, next));
      const shown: Json[] = [];
      for (const row of items) shown.push(await show(row, call));
      return { [name]: shown };
    },
  };
}

function cut<Row>(
  found: readonly Row[],
  limit: number,
  { order, query }: { order: Pick<Order<Row, string, unknown>, 'of'>; query: string },
) {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, next: found.length > limit && last !== undefined ? order.of(last, query) : null };
}

/**
 * Returns all rows that `everyRowInTurn` yields. A list of five rows takes 1 µs; collecting them from a generator takes
 * 20 µs.
 */
export async function allRowsInTurn<Input extends { teamId: string }, Row extends { id: string }>(
  list: (input: Input & Page) => Promise<Row[]>,
  input: Input,
): Promise<Row[]> {
  const all: Row[] = [];
  for (;;) {
    const rows = await list({ ...input, after: all.at(-1)?.id, limit: PAGE_ROWS });
    for (const row of rows) all.push(row);
    if (rows.length < PAGE_ROWS) return all;
    await ownTurn(input.teamId);
  }
}

/** As many rows as `listOperation` reads for a page of the usual size. */
const PAGE_ROWS = PAGE_SIZE.usual + 1;

/** Yields all rows of a list, in short pages. Before each page but the first, other calls get turns to read a page. */
export function everyRowInTurn<Input extends { teamId: string }, Row extends { id: string }>(
  list: (input: Input & Page) => Promise<Row[]>,
  input: Input,
): AsyncGenerator<Row, void> {
  const { limit = PAGE_ROWS } = input as Partial<Page>;
  let isFirst = true;
  return everyRow(
    async (page: Input & Page) => {
      if (!isFirst) await ownTurn(input.teamId);
      isFirst = false;
      return list(page);
    },
    { ...input, limit: Math.min(limit, PAGE_ROWS) },
  );
}

export const WORKFLOW_FILTER = textParameter('workflowId', 'Filter by workflow ID');

/**
 * The filter as an input of the store; empty if the query has no `workflowId`.
 *
 * @throws Problem `workflow_not_found`
 */
export async function workflowFilter({
  services,
  caller,
  query,
}: Pick<KeyedCall, 'services' | 'caller' | 'query'>): Promise<{ workflowId?: string }> {
  const value = WORKFLOW_FILTER.read(query);
  if (value === undefined) return {};
  const workflowId = workflowIdFrom(value);
  const key = { teamId: caller.teamId, id: workflowId };
  found(await services.store.workflows.get(key), 'workflow_not_found');
  return { workflowId };
}

/** A cursor that holds whole numbers. */
export function makeCursor(numbers: readonly number[]): string {
  return Buffer.from(JSON.stringify(numbers)).toString('base64url');
}

/**
 * The numbers in the cursor of the query; undefined without a cursor.
 *
 * @param lengths how many numbers a cursor of this operation may hold
 * @throws Problem `field_invalid` for a cursor that this operation cannot have returned
 */
export function cursorFrom(query: string, lengths: readonly number[]): number[] | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const numbers = parse(text);
  if (numbers === undefined || !lengths.includes(numbers.length)) refuseCursor();
  return numbers;
}

/** A cursor that holds the last ID of a page. */
export function makeIdCursor(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/**
 * The ID in the cursor of the query; undefined without a cursor.
 *
 * @param isId whether the text can be an ID of this list
 * @throws Problem `field_invalid` for a cursor that this operation cannot have returned
 */
export function idCursorFrom(query: string, isId: (text: string) => boolean): string | undefined {
  const text = queryValue(query, 'cursor');
  if (text === undefined) return undefined;
  const id = Buffer.from(text, 'base64url').toString();
  // Decoding tolerates characters that encoding never writes.
  if (makeIdCursor(id) !== text || !isId(id)) refuseCursor();
  return id;
}

/** A `link` header: the URL of the request with another cursor. @param name the parameter that holds the cursor */
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

/** Encodes characters of a raw query that are not allowed between `<` and `>`. */
function uriSafe(pair: string): string {
  return pair.replace(/[^\w\-.~!$'()*+,;:@/?%=]/g, (character) => encodeURIComponent(character));
}

/** @throws Problem `field_invalid` */
export function refuseCursor(): never {
  throw new Problem('field_invalid', {
    sentence:
      'The query parameter `cursor` must come from a `Link` header of this operation, with the same other parameters. ' +
      'Omit it to read the first page',
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
