/**
 * Adaptive limit on the number of concurrent requests of a node. Without a limit, an overload would delay all requests.
 * The limit falls while work waits too long for the event loop or the database. It rises while work hardly waits and
 * the limit is nearly reached. Otherwise it stays unchanged, so that it settles.
 */
import { mayTake, SHARE_ALONE } from '../std/fair-share.ts';

/**
 * The limit never falls below this. A lower limit would not help, because a commit of many changes takes as long as a
 * commit of one change.
 */
export const MIN_LIMIT = 64;
/** The limit never rises above this, because every request uses memory. */
export const MAX_LIMIT = 1_024;
export const INITIAL_LIMIT = 512;
/** Waits longer than `TOO_LONG_MS` lower the limit; waits shorter than `SHORT_MS` let it rise. */
const TOO_LONG_MS = 100;
const SHORT_MS = 50;
/**
 * A sample with a wait longer than `TOO_LONG_MS` is late. Each late sample in a row lowers the limit by this factor,
 * except the first one, which may be a hiccup.
 */
const LOWERED_BY = 0.8;
const RAISED_BY = 1.05;
/** Share of the limit that is available to reads of whole data sets. The rest is reserved for queueing and writing. */
const READ_SHARE = 0.75;

/** One sample of the load. */
export interface LoadSeen {
  limit: number;
  /** The longest measured wait, in milliseconds. */
  waitMs: number;
  /** Number of late samples in a row before this sample. */
  late: number;
  /** Maximum number of concurrent requests since the last sample. */
  most: number;
}

/** Returns the new limit, and the number of late samples in a row for the next call. */
export function nextLimit({ limit, waitMs, late, most }: LoadSeen): { limit: number; late: number } {
  if (waitMs > TOO_LONG_MS) {
    if (late === 0) return { limit, late: 1 };
    return { limit: Math.max(MIN_LIMIT, Math.floor(limit * LOWERED_BY)), late: late + 1 };
  }
  // Raising a limit that was not nearly reached would have no effect.
  const isWanted = most >= limit * READ_SHARE;
  if (waitMs < SHORT_MS && isWanted)
    return { limit: Math.min(MAX_LIMIT, Math.ceil(limit * RAISED_BY)), late: 0 };
  return { limit, late: 0 };
}

/**
 * How much a route costs, which decides when its requests are rejected. `light` requests (health and readiness) are
 * never rejected. `whole` requests read whole data sets, and are rejected beyond a share of the limit. `long` requests
 * (streams, long polls and pushes) mostly wait, and their clients reconnect by themselves, so they are rejected as soon
 * as any other request is rejected. `brief` requests are all others, and are rejected beyond the limit.
 */
export type Weight = 'light' | 'brief' | 'whole' | 'long';

/**
 * Whether a further request of a team is accepted. A team that is alone may use the whole limit. One third more is
 * reserved for other teams; `std/fair-share.ts` describes how teams share it.
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

/** Maximum number of concurrent requests of all teams together, if a single team may have at most `alone`. */
export function placesFor(alone: number): number {
  return Math.ceil(alone / SHARE_ALONE);
}

export interface LoadNow {
  /**
   * Number of running requests of all teams. At most `mostOfTeam` requests count for each team, because a team that
   * exceeds a lowered limit must not use up the share of other teams too.
   */
  working(mostOfTeam: number): number;
  /** Number of running requests of the team that sends the request. */
  held: number;
  limit: number;
  /**
   * Whether requests of this team were rejected a moment ago, or requests of any team because the node had reached its
   * limit for all teams.
   */
  isPressed: boolean;
  isShortOfMemory: boolean;
}

/**
 * Memory becomes short when more than `SHORT_OF_MEMORY` of it is used, and stays short until at most `ENOUGH_MEMORY` is
 * used.
 */
const SHORT_OF_MEMORY = 0.9;
const ENOUGH_MEMORY = 0.8;

/**
 * Whether memory is short.
 *
 * @param used used share of the memory, in [0, 1]
 */
export function isShort(used: number, wasShort: boolean): boolean {
  return used > (wasShort ? ENOUGH_MEMORY : SHORT_OF_MEMORY);
}

export interface Rate {
  count: number;
  /** In milliseconds, a multiple of 1,000. */
  windowMs: number;
}

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;
const MOST = 1_000_000;
const LONGEST_MS = 24 * UNIT_MS.h;

/** Parses `600/1m` (600 per minute) or `10/s` (10 per second); undefined if invalid. */
export function parseRate(text: string): Rate | undefined {
  const match = /^(\d{1,7})\/(\d{0,5})(s|m|h)$/.exec(text);
  if (match === null) return undefined;
  const [, written = '', times = '', unit = 's'] = match;
  const count = Number(written);
  const windowMs = Number(times || 1) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const isWithin = count >= 1 && count <= MOST && windowMs >= UNIT_MS.s && windowMs <= LONGEST_MS;
  return isWithin ? { count, windowMs } : undefined;
}
