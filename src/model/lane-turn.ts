/** Whose turn it is within a lane: classes of deliveries, and the tokens of a lane with a rate. */
import type { DeliveryClass } from './delivery.ts';

/** One in so many requests goes to what is not live, so that it does not starve. */
const LOWER_EVERY = 8;

/**
 * The class that the next request of a lane goes to: live before retry before replay, but each eighth the other way
 * round, in turn to retry and to replay.
 *
 * @param turn counts the requests of the lane, from 0
 * @param waiting how many deliveries of each class are there
 */
export function nextClass(
  turn: number,
  waiting: Readonly<Record<DeliveryClass, number>>,
): DeliveryClass | undefined {
  return orderAt(turn).find((name) => waiting[name] > 0);
}

function orderAt(turn: number): readonly DeliveryClass[] {
  if (turn % LOWER_EVERY !== LOWER_EVERY - 1) return ['live', 'retry', 'replay'];
  const isReplay = turn % (2 * LOWER_EVERY) === 2 * LOWER_EVERY - 1;
  return isReplay ? ['replay', 'retry', 'live'] : ['retry', 'replay', 'live'];
}

/** A token bucket: how many requests may start at once, and as of when. Times in epoch milliseconds. */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export const FULL_BUCKET: Bucket = { tokens: Number.POSITIVE_INFINITY, at: 0 };

/** A bucket as it counts at a time: one that is dated later was emptied before the clock was set back. */
export function asOf(bucket: Bucket, nowMs: number): Bucket {
  return bucket.at > nowMs ? { ...bucket, at: nowMs } : bucket;
}

/** The tokens at a time. What is saved up is a tenth of a second's, and at least one. */
export function refill(bucket: Bucket, ratePerSecond: number, nowMs: number): Bucket {
  const most = Math.max(1, ratePerSecond / 10);
  const gained = (Math.max(0, nowMs - bucket.at) / 1_000) * ratePerSecond;
  return { tokens: Math.min(most, bucket.tokens + gained), at: nowMs };
}

/** When the next request may start. */
export function tokenAt(bucket: Bucket, ratePerSecond: number): number {
  return bucket.tokens >= 1
    ? bucket.at
    : bucket.at + Math.ceil(((1 - bucket.tokens) * 1_000) / ratePerSecond);
}
