/** Pages of the store's lists, by place or period. Reads of SQLite block the event loop, so each returns one page. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstIdAt } from '../std/id.ts';

/** At most `limit` rows after the place `after`. A page with fewer than `limit` rows is the last one. */
export interface Page<Place = string> {
  after?: Place | undefined;
  limit: number;
}

/** SQLite reads this many of 10,000 webhooks or workflows in about 2 ms. */
const ROWS = 250;

/**
 * Every row of a list, page by page, with a turn of the event loop between pages. Rows that are added or removed
 * meanwhile may be missing; all others occur once.
 *
 * @param input the input of the list; an `after` is where it starts, and a `limit` makes the pages smaller
 * @param placeOf the place of a row (default: its id)
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
 * By how much the time in an id may exceed its row's time: ids keep growing when the clock is set back. The time in an id
 * is never earlier, so the lower bound needs no margin.
 */
const AHEAD_MS = 3_600_000;

/** Times in epoch milliseconds, both inclusive. */
export interface Period {
  since?: number | undefined;
  until?: number | undefined;
}

/**
 * The range of ids, from `first` and before `end`, that contains all rows of a period with ids below `before`. The
 * caller must still filter the rows by time, from `since` to `until`.
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
