/** A token bucket: keeps the requests of a lane to the rate that its webhook allows. */

/** How many requests may start at once, and as of when. Times in epoch milliseconds. */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export const FULL_BUCKET: Bucket = { tokens: Number.POSITIVE_INFINITY, at: 0 };

/** The bucket as of a time. One that is dated later was used before the clock was set back: its tokens count from now. */
export function asOf(bucket: Bucket, nowMs: number): Bucket {
  return bucket.at > nowMs ? { ...bucket, at: nowMs } : bucket;
}

/** Adds the tokens gained since. The bucket holds a tenth of a second's worth, and at least one. */
export function refill(bucket: Bucket, ratePerSecond: number, nowMs: number): Bucket {
  const most = Math.max(1, ratePerSecond / 10);
  const gained = (Math.max(0, nowMs - bucket.at) / 1_000) * ratePerSecond;
  return { tokens: Math.min(most, bucket.tokens + gained), at: nowMs };
}

/** When the next request may start, in epoch milliseconds. */
export function tokenAt(bucket: Bucket, ratePerSecond: number): number {
  return bucket.tokens >= 1
    ? bucket.at
    : bucket.at + Math.ceil(((1 - bucket.tokens) * 1_000) / ratePerSecond);
}
