/**
 * How many requests a node works on at once. More arrive than it can answer: then each of them waits longer, and all
 * of them are late. So the number is lowered while work waits too long (for the event loop, or for the database), and
 * raised while more is asked for and nothing waits: additive increase, multiplicative decrease, with room between the
 * two so that it comes to rest.
 */

/** Never fewer: a commit takes as long for one as for many. */
export const LEAST = 64;
/** Never more: each holds memory. */
export const MOST = 1_024;
export const FIRST = 512;
/** Waiting in milliseconds beyond which there is too much work, and below which there is room for more. */
const TOO_LONG_MS = 100;
const SHORT_MS = 50;
/** One time over the bound is a hiccup; each further one takes so much away. */
const LOWERED = 0.8;
const RAISED = 1.05;
/** Reads of whole datasets end here, so that those who queue and write have the rest. */
const READS = 0.75;

/** What was seen in one look. */
export interface LoadSeen {
  limit: number;
  /** How long work waits: the longest of what is measured. */
  waitMs: number;
  /** How many times in a row, before this one, it was too long. */
  late: number;
  /** How many were worked on at most since the last look. */
  most: number;
}

/** The limit from now on, and how many times in a row work has waited too long. */
export function nextLimit({ limit, waitMs, late, most }: LoadSeen): { limit: number; late: number } {
  if (waitMs > TOO_LONG_MS) {
    if (late === 0) return { limit, late: 1 };
    return { limit: Math.max(LEAST, Math.floor(limit * LOWERED)), late: late + 1 };
  }
  // What is not used up cannot have been too low.
  const isWanted = most >= limit * READS;
  if (waitMs < SHORT_MS && isWanted) return { limit: Math.min(MOST, Math.ceil(limit * RAISED)), late: 0 };
  return { limit, late: 0 };
}

/**
 * How much of the limit something may use. `light`: how the node is, always answered. `long`: mostly waits, and comes
 * back by itself: streams, waits, pushes; none while others are refused. `whole`: reads of whole datasets.
 */
export type Weight = 'light' | 'brief' | 'whole' | 'long';

/** Whether one more may be worked on. `isPressed`: others were refused a moment ago, or memory is short. */
export function admits(weight: Weight, { working, limit, isPressed, isShortOfMemory }: LoadNow): boolean {
  if (weight === 'light') return true;
  if (weight === 'long') return !isPressed && !isShortOfMemory;
  if (weight === 'whole') return !isShortOfMemory && working < limit * READS;
  return working < (isShortOfMemory ? LEAST : limit);
}

export interface LoadNow {
  working: number;
  limit: number;
  isPressed: boolean;
  isShortOfMemory: boolean;
}

/** Of the memory that there is; between the two it stays as it was. */
const SHORT_OF_MEMORY = 0.9;
const ENOUGH_MEMORY = 0.8;

/** @param used the part of the memory that is used, in [0, 1] */
export function isShort(used: number, wasShort: boolean): boolean {
  return used > (wasShort ? ENOUGH_MEMORY : SHORT_OF_MEMORY);
}
