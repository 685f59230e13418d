/** Usage counters of a team per hour and day. */
import { type Attempt, afterAttempt } from './delivery.ts';

/** What the counters are about. */
export type UsageKind = 'team' | 'workflow' | 'webhook';

export const USAGE_PERIODS = ['hour', 'day'] as const;
export type UsagePeriod = (typeof USAGE_PERIODS)[number];

/**
 * Attempts are counted with this delay, when they are certainly settled: an attempt takes at most 30 s
 * (`MAX_TIMEOUT_MS`).
 */
export const USAGE_GRACE_MS = 60_000;

/** Hours and days are in UTC. */
export const PERIOD_MS: Readonly<Record<UsagePeriod, number>> = { hour: 3_600_000, day: 86_400_000 };

/** The usage counters. A workflow has no deliveries, and a webhook has no jobs or records. */
export interface UsageCounts {
  finished: number;
  failed: number;
  canceled: number;
  added: number;
  changed: number;
  removed: number;
  delivered: number;
  failedAttempts: number;
  dead: number;
  /**
   * Number of deliveries in each bucket of `LATENCY_BOUNDS_MS`. The last item counts the deliveries slower than every
   * bound.
   */
  latency: number[];
}

/**
 * Upper bounds of the histogram's buckets, in milliseconds. Usage is stored as a histogram because histograms can be
 * added up, and percentiles cannot.
 */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000,
];

export function noUsage(): UsageCounts {
  return {
    finished: 0,
    failed: 0,
    canceled: 0,
    added: 0,
    changed: 0,
    removed: 0,
    delivered: 0,
    failedAttempts: 0,
    dead: 0,
    latency: Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0),
  };
}

/** Adds `more` to `sum`. */
export function addUsage(sum: UsageCounts, more: Partial<UsageCounts>): void {
  for (const [name, count] of Object.entries(more)) {
    if (typeof count === 'number') sum[name as Exclude<keyof UsageCounts, 'latency'>] += count;
  }
  for (const [place, count] of (more.latency ?? []).entries()) {
    sum.latency[place] = (sum.latency[place] ?? 0) + count;
  }
}

/** The counts of one attempt. */
export function attemptUsage(
  attempt: Pick<Attempt, 'outcome' | 'status' | 'durationMs'> & { number: number },
): Partial<UsageCounts> {
  const { outcome, status, durationMs, number } = attempt;
  if (outcome === 'ok') {
    const slower = LATENCY_BOUNDS_MS.findIndex((bound) => durationMs <= bound);
    const { latency } = noUsage();
    latency[slower === -1 ? LATENCY_BOUNDS_MS.length : slower] = 1;
    return { delivered: 1, latency };
  }
  const next = afterAttempt({ outcome, status, attempt: number, nowMs: 0, random: 0, retryAfterMs: null });
  return { failedAttempts: 1, dead: next.state === 'dead' ? 1 : 0 };
}

/**
 * Percentile of the latency of deliveries, in milliseconds, interpolated linearly between two bounds; null if nothing
 * was delivered.
 *
 * @param share in (0, 1]
 */
export function latencyPercentile(latency: readonly number[], share: number): number | null {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [place, count] of latency.entries()) {
    const from = LATENCY_BOUNDS_MS[place - 1] ?? 0;
    // The last bucket has no upper bound, so its lower bound is used: no delivery takes much longer, because the
    // timeout of a webhook is at most 30 s.
    const to = LATENCY_BOUNDS_MS[place] ?? from;
    if (count > 0 && below + count >= total * share) {
      return Math.round(from + ((to - from) * (total * share - below)) / count);
    }
    below += count;
  }
  return LATENCY_BOUNDS_MS.at(-1) ?? null;
}

/** The start of the hour or day that contains a moment. */
export function periodStart(period: UsagePeriod, atMs: number): number {
  return Math.floor(atMs / PERIOD_MS[period]) * PERIOD_MS[period];
}
