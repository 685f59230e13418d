/** Rows of a time by their ids, which begin with it: no index over times is needed. The same for every driver. */
import { firstIdAt } from '../std/id.ts';

/** After every id. */
const LAST = '~';
/**
 * So much later than its row may an id say that it was made: ids go on growing when the clock is set back. Never
 * earlier, so that nothing is missed at the other end.
 */
const AHEAD_MS = 3_600_000;

/** Times in epoch milliseconds, both included. */
export interface Period {
  since?: number | undefined;
  until?: number | undefined;
}

/**
 * From which id on, and before which, rows of a time stand that are older than another one; and the time itself, by
 * which rows are still to be chosen.
 */
export function idsBetween(
  prefix: string,
  { since = 0, until = Number.MAX_SAFE_INTEGER, before = LAST }: Period & { before?: string | undefined },
): { first: string; end: string; since: number; until: number } {
  const last = until >= LAST_MS ? LAST : firstIdAt(prefix, until + AHEAD_MS);
  return { first: firstIdAt(prefix, since), end: before < last ? before : last, since, until };
}

/** The last millisecond that an id can name, an hour before it. */
const LAST_MS = 2 ** 48 - 1 - AHEAD_MS;
