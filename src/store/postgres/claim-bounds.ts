/**
 * Bounds from which the search of a team's jobs starts. During a long transaction, the indexes of waiting and of running
 * jobs keep a dead entry for every job that was ever in them. A search that starts after the dead entries does not read
 * them again.
 *
 * A job enters these indexes with a date no earlier than the start of the transaction that writes it. So no entry can
 * be added that is older than every open transaction. Between two surveys, the only waiting or running jobs of a team
 * that are that old are the ones that the last survey found.
 */
import type { Clock } from '../../std/clock.ts';

/**
 * Maximum time between reading the clock and committing. If a transaction takes longer, searches find its job only after
 * the next survey.
 */
const TRANSACTION_MS = 10_000;
/** A survey follows after this many searches, or after this time if searches are rare. */
const SURVEY_EVERY = 60;
const SURVEY_EVERY_MS = 60_000;
/** Maximum number of long-running jobs to list. If there are more, none is listed, and every search counts all. */
export const MAX_NAMED = 1_000;

/** What a search of one team can skip. */
export interface Bounds {
  /** Every waiting job is due at this time or later, in epoch milliseconds. */
  waitingSince: number;
  /** Every running job that was claimed before this time, in epoch milliseconds, is listed in `running` by its id. */
  runningSince: number;
  running: readonly string[];
}

export const NONE: Bounds = { waitingSince: -1, runningSince: -1, running: [] };

/** What a survey found. */
export interface Survey {
  /** When the first waiting job is due; null if none is waiting. */
  firstAt: number | null;
  /** Ids of the running jobs that were claimed before `surveyTo`, at most one more than `MAX_NAMED`. */
  old: readonly string[];
}

/** The bounds of one team. A survey is a search without bounds, once in 60 searches and at least every 60 s. */
export class ClaimBounds {
  readonly #elapsed: Clock;
  #bounds = NONE;
  /** Searches since the last survey. */
  #searches = 0;
  #surveyedAtMs: number;
  #lastMs = 0;

  /** @param elapsed returns milliseconds of a monotonic clock */
  constructor(elapsed: Clock = () => performance.now()) {
    this.#elapsed = elapsed;
    this.#surveyedAtMs = elapsed();
  }

  /** The bounds of the last search. */
  get current(): Bounds {
    return this.#bounds;
  }

  /** Begins a search. Returns the time that its survey must be passed to `surveyed` with, or -1 if it is no survey. */
  next(nowMs: number): number {
    // If the clock was set back, new jobs may be dated before the bounds, so the bounds are dropped.
    if (nowMs < this.#lastMs) this.#bounds = NONE;
    this.#lastMs = nowMs;
    this.#searches += 1;
    const elapsedMs = this.#elapsed();
    if (this.#searches < SURVEY_EVERY && elapsedMs - this.#surveyedAtMs < SURVEY_EVERY_MS) return -1;
    this.#searches = 0;
    this.#surveyedAtMs = elapsedMs;
    this.#bounds = NONE;
    return nowMs - TRANSACTION_MS;
  }

  surveyed(to: number, { firstAt, old }: Survey): void {
    const waitingSince = Math.min(firstAt ?? to, to);
    this.#bounds =
      old.length > MAX_NAMED ? { ...NONE, waitingSince } : { waitingSince, runningSince: to, running: old };
  }
}
