/** Pages of the store's lists, by place or period: reads of SQLite hold up the event loop, so none has more than one. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstIdAt } from '../std/id.ts';

/** At most `limit` rows, from behind the place `after`. Fewer than `limit` are the last. */
export interface Page<Place = string> {
  after?: Place | undefined;
  limit: number;
}

/** Of 10,000 webhooks or workflows SQLite reads so many in some 2 ms. */
const ROWS = 250;

/**
 * Every row of a list, page by page, with a turn of the event loop before each page but the first. Rows that come or go
 * meanwhile may be missing; all others are there once.
 *
 * @param input what the list needs; it may begin behind an `after`, and its `limit` makes the pages smaller
 * @param placeOf by default the id of the row
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
 * By how much the time in an id may be ahead of its row's: ids go on growing when the clock is set back. It is never
 * behind, so that the lower bound needs no margin.
 */
const AHEAD_MS = 3_600_000;

/** Times in epoch milliseconds, both inclusive. */
export interface Period {
  since?: number | undefined;
  until?: number | undefined;
}

/**
 * The range of ids, from `first` and before `end`, that contains all rows of a period that come before the id `before`.
 * The caller must still filter the rows by time, from `since` to `until`.
 */
export function idsBetween(
  prefix: string,
  { since = 0, until = Number.MAX_SAFE_INTEGER, before = LAST }: Period & { before?: string | undefined },
): { first: string; end: string; since: number; until: number } {
  const last = until >= LAST_MS ? LAST : firstIdAt(prefix, until + AHEAD_MS);
  return { first: firstIdAt(prefix, since), end: before < last ? before : last, since, until };
}

/** The last millisecond that an id can hold, less the margin. */
const LAST_MS = 2 ** 48 - 1 - AHEAD_MS;
