/**
 * How many requests a node works on at once. Without a limit, more requests than it can answer would make all of them
 * late. The limit is lowered while work waits too long (for the event loop or the database) and raised while nothing
 * waits and the limit is used. Between the two bounds it stays as it is, so that it settles.
 */
import { mayTake, SHARE_ALONE } from '../std/fair-share.ts';

/** Never fewer: a commit takes as long for one as for many. */
export const MIN_LIMIT = 64;
/** Never more: each holds memory. */
export const MAX_LIMIT = 1_024;
export const INITIAL_LIMIT = 512;
/** Work that waits longer is too much; work that waits less leaves room for more. */
const TOO_LONG_MS = 100;
const SHORT_MS = 50;
/** One look over the bound is a hiccup; each further one in a row lowers the limit by this factor. */
const LOWERED_BY = 0.8;
const RAISED_BY = 1.05;
/** The share of the limit that reads of whole datasets may use: the rest is for those who queue and write. */
const READ_SHARE = 0.75;

/** What one look has measured. */
export interface LoadSeen {
  limit: number;
  /** How long work waits: the longest of what is measured. */
  waitMs: number;
  /** How many looks in a row, before this one, found that work waits too long. */
  late: number;
  /** The most requests that were worked on at once since the last look. */
  most: number;
}

/** The limit from now on, and `late` for the next look. */
export function nextLimit({ limit, waitMs, late, most }: LoadSeen): { limit: number; late: number } {
  if (waitMs > TOO_LONG_MS) {
    if (late === 0) return { limit, late: 1 };
    return { limit: Math.max(MIN_LIMIT, Math.floor(limit * LOWERED_BY)), late: late + 1 };
  }
  // A limit that was not used up is not too low.
  const isWanted = most >= limit * READ_SHARE;
  if (waitMs < SHORT_MS && isWanted)
    return { limit: Math.min(MAX_LIMIT, Math.ceil(limit * RAISED_BY)), late: 0 };
  return { limit, late: 0 };
}

/**
 * What a route costs, which says when it is refused. `light`: health and readiness, never. `brief`: everything else, at
 * the limit. `whole`: reads of whole datasets, at a share of it. `long`: streams, waits and pushes, which mostly wait
 * and whose clients come back by themselves, as soon as others are refused.
 */
export type Weight = 'light' | 'brief' | 'whole' | 'long';

/**
 * Whether one more request of a team may be worked on. A team that is alone may use the whole limit; a third of that
 * again is there for others, shared as `std/fair-share.ts` says.
 */
export function admits(
  weight: Weight,
  { working, held, limit, isPressed, isShortOfMemory }: LoadNow,
): boolean {
  if (weight === 'light') return true;
  if (weight === 'long') return !isPressed && !isShortOfMemory;
  if (weight === 'whole' && isShortOfMemory) return false;
  const alone = weight === 'whole' ? limit * READ_SHARE : isShortOfMemory ? MIN_LIMIT : limit;
  return mayTake({ held, free: placesFor(alone) - working(alone) });
}

/** How many requests are worked on at most, of all teams, if one that is alone may have so many. */
export function placesFor(alone: number): number {
  return Math.ceil(alone / SHARE_ALONE);
}

export interface LoadNow {
  /**
   * Requests of all teams that are worked on, where none counts with more than so many: after the limit was lowered, one
   * that has more than the limit must not take the rest of the places as well.
   */
  working(mostOfTeam: number): number;
  /** Of them those of this team. */
  held: number;
  limit: number;
  /** Others of this team were refused a moment ago, or of any while everything was in use. */
  isPressed: boolean;
  isShortOfMemory: boolean;
}

/** Shares of the memory: above the first it is short, below the second it no longer is. */
const SHORT_OF_MEMORY = 0.9;
const ENOUGH_MEMORY = 0.8;

/** Whether memory is short. @param used the share of it that is used, in [0, 1] */
export function isShort(used: number, wasShort: boolean): boolean {
  return used > (wasShort ? ENOUGH_MEMORY : SHORT_OF_MEMORY);
}

export interface Rate {
  count: number;
  /** Whole seconds. */
  windowMs: number;
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
const MOST = 1_000_000;
const LONGEST_MS = 24 * UNIT_MS.h;

/** Reads `600/1m` (600 within a minute) or `10/s` (ten within a second); undefined for anything else. */
export function parseRate(text: string): Rate | undefined {
  const match = /^(\d{1,7})\/(\d{0,5})(s|m|h)$/.exec(text);
  if (match === null) return undefined;
  const [, written = '', times = '', unit = 's'] = match;
  const count = Number(written);
  const windowMs = Number(times || 1) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const isWithin = count >= 1 && count <= MOST && windowMs >= UNIT_MS.s && windowMs <= LONGEST_MS;
  return isWithin ? { count, windowMs } : undefined;
}
