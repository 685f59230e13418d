/**
 * How many requests a lane may have under way at its endpoint: a concurrency limit and a circuit breaker, which learn
 * from each attempt.
 *
 *              10 faults in a row, or half of 20 in a minute
 *     closed ───────────────────────────────────────────────▶ open: one probe after 30 s, 1, 2, 4, 8, 15, 15 … min
 *       ▲  1..16 requests at once                              ▲ │
 *       │  +1 after as many quick successes,         any fault │ │ the probe is answered
 *       │  half after a fault or a 429                         │ ▼
 *       └───────────────────────────────────────────────── half open: 1 request at once, 2, 4
 *                       four at once went well
 *
 * While it is open, nothing but the probe uses up an attempt. A fault is an endpoint that cannot be reached, does
 * not answer in time, or answers 5xx; an answer that merely refuses (4xx, 3xx) says that the endpoint is there.
 */
import { type Attempt, type DeliveryClass, MAX_RETRY_AFTER_MS } from './delivery.ts';

/** Concurrent requests to one webhook: at the start, and at most. */
export const START_LIMIT = 4;
export const MAX_LIMIT = 16;
/** An endpoint that takes longer than this is slow, and so is a request that has been under way for longer. */
export const SLOW_MS = 1_000;
/** As is one whose last so many attempts failed. */
const SLOW_FAILURES = 3;
/** The share of the newest attempt in the moving average of durations. */
const NEWEST_SHARE = 0.3;
/** What opens the breaker: so many faults in a row, or half of at least so many attempts within a minute. */
const MAX_FAULTS = 10;
const MIN_ATTEMPTS = 20;
const MINUTE_MS = 60_000;
/** Waits before the probes, from one to the next; the last one repeats. */
export const PROBE_MS: readonly number[] = [30_000, 60_000, 120_000, 240_000, 480_000, 900_000];
/** No lane rests for longer: one that seems to began its rest before the clock was set back, and has rested. */
export const MAX_REST_MS = MAX_RETRY_AFTER_MS;
/** A webhook without any success for so long is paused. */
const PAUSE_AFTER_MS = 5 * 24 * 3_600_000;
/** And not before so many attempts have failed since the lane began: as many as one delivery has. */
const PAUSE_AFTER_FAILURES = 10;

/** What an attempt says of its endpoint: it accepted, it refused, it is overloaded, it is out of order. */
export type Verdict = 'well' | 'refused' | 'busy' | 'fault';

/** What is known of an endpoint. Times in epoch milliseconds. */
export interface LaneHealth {
  readonly state: 'closed' | 'open' | 'half_open';
  /** Requests at once. */
  readonly limit: number;
  /** Nothing is sent before; 0 when it does not rest. */
  readonly restsUntil: number;
  /** Since when every attempt has failed. */
  readonly failingSince: number | null;
  /** Successes that count towards the next, larger limit. */
  readonly streak: number;
  /** The last so many attempts failed; of those the last so many were faults. */
  readonly failures: number;
  readonly faults: number;
  /** Moving average of what an attempt takes; null before the first. */
  readonly averageMs: number | null;
  /** How often it has opened since it was last closed. */
  readonly openings: number;
  readonly minute: { readonly since: number; readonly attempts: number; readonly faults: number };
}

/** The state of a new lane. One whose endpoint was failing starts slowly, for it may just have come back. */
export function startHealth(failingSince: number | null): LaneHealth {
  return {
    state: failingSince === null ? 'closed' : 'half_open',
    limit: failingSince === null ? START_LIMIT : 1,
    restsUntil: 0,
    failingSince,
    streak: 0,
    failures: 0,
    faults: 0,
    averageMs: null,
    openings: 0,
    minute: { since: 0, attempts: 0, faults: 0 },
  };
}

/** The state as of a time: a rest that would last longer than any was dated by a clock that was set back, and is over. */
export function rested(health: LaneHealth, nowMs: number): LaneHealth {
  return health.restsUntil > nowMs + MAX_REST_MS ? { ...health, restsUntil: nowMs } : health;
}

export function verdictOf({ outcome, status }: Pick<Attempt, 'outcome' | 'status'>): Verdict {
  if (outcome === 'ok') return 'well';
  if (outcome !== 'http') return 'fault';
  if (status === 429) return 'busy';
  return status !== null && status >= 500 ? 'fault' : 'refused';
}

/**
 * The state after an attempt.
 *
 * @param seen.probe whether it was sent while the breaker was open; what was sent before says nothing then
 * @param seen.restMs how long the endpoint asked to be left alone, see `restAfter`
 * @param seen.random in [0, 1): 0–20 % are added to the wait before a probe, so that it is never early
 */
export function learn(
  known: LaneHealth,
  seen: {
    verdict: Verdict;
    tookMs: number;
    probe: boolean;
    restMs: number;
    nowMs: number;
    random: number;
  },
): LaneHealth {
  const { verdict, nowMs } = seen;
  const before = rested(known, nowMs);
  const health = counted(before, seen);
  const isFault = verdict === 'fault';
  if (before.state === 'open' && !seen.probe) return health;
  if (isFault && (before.state !== 'closed' || isOutOfOrder(health))) return opened(health, seen);
  if (before.state === 'open') return { ...health, state: 'half_open', limit: 1, streak: 0 };
  if (isFault || verdict === 'busy') {
    return { ...health, limit: Math.max(1, Math.floor(health.limit / 2)), streak: 0 };
  }
  const counts = verdict === 'well' && (before.state === 'half_open' || seen.tookMs <= SLOW_MS);
  if (!counts) return { ...health, streak: 0 };
  return health.streak + 1 < health.limit ? { ...health, streak: health.streak + 1 } : raised(health, nowMs);
}

function counted(before: LaneHealth, seen: Parameters<typeof learn>[1]): LaneHealth {
  const { verdict, tookMs, nowMs, restMs } = seen;
  const isFault = verdict === 'fault';
  // A minute that begins later than now began before the clock was set back.
  const isWithin = Math.abs(nowMs - before.minute.since) < MINUTE_MS;
  const within = isWithin ? before.minute : { attempts: 0, faults: 0, since: nowMs };
  const { averageMs } = before;
  return {
    ...before,
    restsUntil: restMs > 0 ? Math.max(before.restsUntil, nowMs + restMs) : before.restsUntil,
    failingSince: verdict === 'well' ? null : (before.failingSince ?? nowMs),
    failures: verdict === 'well' ? 0 : before.failures + 1,
    faults: isFault ? before.faults + 1 : 0,
    averageMs: averageMs === null ? tookMs : averageMs + NEWEST_SHARE * (tookMs - averageMs),
    minute: {
      since: within.since,
      attempts: within.attempts + 1,
      faults: within.faults + (isFault ? 1 : 0),
    },
  };
}

function isOutOfOrder({ faults, minute }: LaneHealth): boolean {
  return faults >= MAX_FAULTS || (minute.attempts >= MIN_ATTEMPTS && minute.faults * 2 >= minute.attempts);
}

function opened(health: LaneHealth, { nowMs, random }: { nowMs: number; random: number }): LaneHealth {
  const waitMs = PROBE_MS[Math.min(health.openings, PROBE_MS.length - 1)] ?? 0;
  return {
    ...health,
    state: 'open',
    limit: 1,
    streak: 0,
    faults: 0,
    openings: health.openings + 1,
    restsUntil: Math.max(health.restsUntil, Math.ceil(nowMs + waitMs * (1 + 0.2 * random))),
    minute: { since: nowMs, attempts: 0, faults: 0 },
  };
}

function raised(health: LaneHealth, nowMs: number): LaneHealth {
  if (health.state === 'closed') {
    return { ...health, limit: Math.min(MAX_LIMIT, health.limit + 1), streak: 0 };
  }
  if (health.limit < START_LIMIT) return { ...health, limit: health.limit * 2, streak: 0 };
  const minute = { since: nowMs, attempts: 0, faults: 0 };
  return { ...health, state: 'closed', limit: START_LIMIT + 1, streak: 0, openings: 0, minute };
}

/** Whether it gets a smaller share of what all lanes have in common. */
export function isSlow({ state, averageMs, failures }: LaneHealth): boolean {
  return state !== 'closed' || failures >= SLOW_FAILURES || (averageMs ?? 0) > SLOW_MS;
}

/**
 * For how long a lane rests after an attempt.
 *
 * @param retryAfterMs what a 429 or 503 asked for; null when it asked for nothing
 * @param waitMs until this delivery is tried again by its schedule
 */
export function restAfter(retryAfterMs: number | null, waitMs: number): number {
  return retryAfterMs === null ? 0 : Math.min(Math.max(waitMs, retryAfterMs), MAX_RETRY_AFTER_MS);
}

/** Why a webhook is paused after a failed attempt: a sentence; null while it is not. */
export function pauseReason(
  { failingSince, failures }: LaneHealth,
  nowMs: number,
  error: string | null,
): string | null {
  if (failingSince === null || nowMs - failingSince < PAUSE_AFTER_MS) return null;
  // Of one that is seldom called, a failure last week and one today say little.
  if (failures < PAUSE_AFTER_FAILURES) return null;
  return (
    `Nothing has been received for five days, since ${new Date(failingSince).toISOString()}. The last attempt: ` +
    `${error ?? 'it failed'}. Resume the webhook when its endpoint is well`
  );
}

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

/** The circuit breaker as it is written down, so that everybody can read why an endpoint gets less than is due. Times in epoch milliseconds. */
export interface Breaker {
  /** `closed`: it rests because the endpoint asked for it with `Retry-After`. */
  state: LaneHealth['state'];
  /** Since when it has been held back. */
  since: number;
  /** Nothing is sent before. */
  until: number;
  /** The last so many attempts failed. */
  failures: number;
}

/** A shorter rest is over before anybody has read of it. */
const WORTH_WRITING_MS = 1_000;

/**
 * What to write down after an attempt: null while what is due goes out at once.
 *
 * @param known what was written down before
 */
export function breakerOf(health: LaneHealth, known: Breaker | null, nowMs: number): Breaker | null {
  const { state, restsUntil: until, failures } = health;
  if (state === 'closed' && until - nowMs < WORTH_WRITING_MS) return null;
  return { state, since: known?.since ?? nowMs, until, failures };
}

/** Whether one says so much the same as the other that it need not be written. */
export function isSameBreaker(one: Breaker | null, other: Breaker | null): boolean {
  if (one === null || other === null) return one === other;
  return one.state === other.state && Math.abs(one.until - other.until) < WORTH_WRITING_MS;
}

/** Why it is held back: a sentence without a full stop; null when it is not. */
export function breakerReason({ state, until, failures }: Breaker, nowMs: number): string | null {
  switch (state) {
    case 'closed':
      return until > nowMs ? 'The endpoint asked for a pause (Retry-After)' : null;
    case 'half_open':
      return 'The endpoint answers again, and gets few requests at a time until some in a row have succeeded';
    case 'open':
      return failures >= MAX_FAULTS
        ? `The endpoint has failed ${failures} times in a row`
        : 'At least half of the attempts within a minute have failed';
  }
}

/** A token bucket, which keeps a lane to the rate that its webhook allows: how many requests may start, and as of when. Times in epoch milliseconds. */
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
