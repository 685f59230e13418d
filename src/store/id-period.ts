/** Selects rows of a period by their ids, which begin with the time: no index over times is needed. */
import { firstIdAt } from '../std/id.ts';

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
