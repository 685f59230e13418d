/**
 * Reads the store's lists page by page, and finds the range of ids for a period. Reads of SQLite block the event loop,
 * so each read returns only one page.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstIdAt } from '../std/id.ts';

/** At most `limit` rows after the place `after`. A page with fewer than `limit` rows is the last one. */
export interface Page<Place = string> {
  after?: Place | undefined;
  limit: number;
}

/** Number of rows per page. From a list of 10,000 webhooks or workflows, SQLite reads a page in about 2 ms. */
const ROWS = 250;

/**
 * Yields every row of a list, reading page by page, with a turn of the event loop between two pages. Rows that are
 * added or removed in the meantime may be missing; every other row occurs once.
 *
 * @param input the input of the list. With `after`, the list starts after that place; with `limit`, pages are smaller
 * @param placeOf returns the place of a row in the list (default: the row's id)
 */
export function everyRow<Input, Row extends { id: string }>(
  list: (input: Input & Page) => Promise<Row[]>,
  input: Input,
): AsyncGenerator<Row, void>;
export function everyRow<Input, Row, Place>(
  list: (input: Input & Page<Place>) => Promise<Row[]>,
  input: Input,
  placeOf: (row: Row) => Place,
): AsyncGenerator<Row, void>;
export async function* everyRow<Input, Row>(
  list: (input: Input & Page<unknown>) => Promise<Row[]>,
  input: Input,
  placeOf = (row: Row): unknown => (row as { id: string }).id,
): AsyncGenerator<Row, void> {
  const given = input as Partial<Page<unknown>>;
  const limit = Math.min(given.limit ?? ROWS, ROWS);
  for (let { after } = given; ; ) {
    const rows = await list({ ...input, after, limit });
    yield* rows;
    if (rows.length < limit) return;
    after = placeOf(rows.at(-1) as Row);
    await nextTurn();
  }
}

/** Sorts after every id. */
const LAST = '~';
/**
 * By how much the time in an id may exceed the creation time of the id's row, because ids keep growing when the clock
 * is set back. The time in an id is never earlier than the row's, so the lower bound needs no margin.
 */
const AHEAD_MS = 3_600_000;

/** Times in epoch milliseconds, both inclusive. */
export interface Period {
  since?: number | undefined;
  until?: number | undefined;
}

/**
 * Returns a range of ids, from `first` up to but not including `end`. The range contains all rows of a period whose ids
 * are below `before`, and possibly other rows, so the caller must also filter by time, from `since` to `until`.
 */
export function idsBetween(
  prefix: string,
  { since = 0, until = Number.MAX_SAFE_INTEGER, before = LAST }: Period & { before?: string | undefined },
): { first: string; end: string; since: number; until: number } {
  const last = until >= LAST_MS ? LAST : firstIdAt(prefix, until + AHEAD_MS);
  return { first: firstIdAt(prefix, since), end: before < last ? before : last, since, until };
}

/** The latest time, in epoch milliseconds, that an id can contain, less the margin. */
const LAST_MS = 2 ** 48 - 1 - AHEAD_MS;
