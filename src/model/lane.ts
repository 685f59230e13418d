/**
 * Concurrency limit and circuit breaker of a lane (the deliveries to one endpoint). Both adapt after each attempt.
 *
 *              10 faults in a row, or half of 20 in a minute
 *     closed ───────────────────────────────────────────────▶ open: one probe after 30 s, 1, 2, 4, 8, 15, 15 … min
 *       ▲  1..16 concurrent requests                           ▲ │
 *       │  +1 after `limit` fast successes,          any fault │ │ the probe gets a response
 *       │  half after a fault or a 429                         │ ▼
 *       └───────────────────────────────────────────────── half open: 1, 2, 4 concurrent requests
 *                       all four succeeded
 *
 * While the breaker is open, only the probe uses up an attempt. A fault means that the endpoint cannot be reached, times
 * out, or returns 5xx. Other responses (3xx, 4xx) show that the endpoint works.
 */
import { type Attempt, type DeliveryClass, MAX_RETRY_AFTER_MS } from './delivery.ts';

/** Initial and maximum limit on the number of concurrent requests to one webhook. */
export const START_LIMIT = 4;
export const MAX_LIMIT = 16;
/**
 * An endpoint is slow if its attempts take longer than this on average. A running request becomes slow after this time.
 */
export const SLOW_MS = 1_000;
/** An endpoint also counts as slow after this many failed attempts in a row. */
const SLOW_FAILURES = 3;
/** Weight of the newest attempt in the moving average of durations. */
const NEWEST_SHARE = 0.3;
/** The breaker opens after 10 faults in a row, or if half of at least 20 attempts within a minute are faults. */
const MAX_FAULTS = 10;
const MIN_ATTEMPTS = 20;
const MINUTE_MS = 60_000;
/** Delays before the probes of an open circuit breaker. The last delay repeats. */
export const PROBE_MS: readonly number[] = [30_000, 60_000, 120_000, 240_000, 480_000, 900_000];
/** No lane rests for longer than this. A longer rest was computed before the clock was set back, and counts as over. */
export const MAX_REST_MS = MAX_RETRY_AFTER_MS;
/**
 * A webhook is paused if no delivery has succeeded for this long and at least `PAUSE_AFTER_FAILURES` attempts have
 * failed.
 */
const PAUSE_AFTER_MS = 5 * 24 * 3_600_000;
/**
 * A webhook is paused only after at least this many failed attempts in a row since the lane was created: as many as one
 * delivery has.
 */
const PAUSE_AFTER_FAILURES = 10;

/**
 * What an attempt shows about its endpoint: `well` for a 2xx response, `busy` for 429, `refused` for any other 3xx or
 * 4xx, `fault` for 5xx or no response. An SMTP server is `busy` if it asks to send a mail later (4xx), and `refused` if
 * it refuses the mail (5xx); with 421 it ends the conversation.
 */
export type Verdict = 'well' | 'refused' | 'busy' | 'fault';

/** State of an endpoint. Times are in epoch milliseconds. */
export interface LaneHealth {
  readonly state: 'closed' | 'open' | 'half_open';
  /** Maximum number of concurrent requests. */
  readonly limit: number;
  /** Nothing is sent before this time; 0 if the lane is not resting. */
  readonly restsUntil: number;
  /** Time of the first failure since the last success. */
  readonly failingSince: number | null;
  /** Number of successes in a row that count toward a higher limit. */
  readonly streak: number;
  /** Failed attempts in a row (`failures`), and faults in a row (`faults`). */
  readonly failures: number;
  readonly faults: number;
  /** Moving average of the duration of attempts; null before the first attempt. */
  readonly averageMs: number | null;
  /** How many times the breaker has opened since it was last closed. */
  readonly openings: number;
  readonly minute: { readonly since: number; readonly attempts: number; readonly faults: number };
}

/** The state of a new lane. A failing endpoint may have just recovered, so its lane starts half open. */
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

/** Ends a rest that is longer than `MAX_REST_MS`, because such a rest was computed before the clock was set back. */
export function rested(health: LaneHealth, nowMs: number): LaneHealth {
  return health.restsUntil > nowMs + MAX_REST_MS ? { ...health, restsUntil: nowMs } : health;
}

export function verdictOf({ outcome, status }: Pick<Attempt, 'outcome' | 'status'>): Verdict {
  if (outcome === 'ok') return 'well';
  if (outcome === 'smtp' && status !== 421) return status !== null && status < 500 ? 'busy' : 'refused';
  if (outcome !== 'http') return 'fault';
  if (status === 429) return 'busy';
  return status !== null && status >= 500 ? 'fault' : 'refused';
}

/**
 * The state after an attempt.
 *
 * @param seen.probe whether the attempt was the probe of an open breaker; other attempts that end then do not count
 * @param seen.restMs how long the lane rests at the endpoint's request, see `restAfter`
 * @param seen.random in [0, 1): extends the delay before a probe by 0–20 %, so that a probe is never early
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
  // If the minute starts in the future, it was recorded before the clock was set back.
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

/** Whether the lane gets a smaller share of the request slots that all lanes share. */
export function isSlow({ state, averageMs, failures }: LaneHealth): boolean {
  return state !== 'closed' || failures >= SLOW_FAILURES || (averageMs ?? 0) > SLOW_MS;
}

/**
 * How long a lane rests after an attempt, in milliseconds.
 *
 * @param retryAfterMs the `Retry-After` of a 429 or 503 response; null if there was none
 * @param waitMs delay until the scheduled retry of this delivery
 */
export function restAfter(retryAfterMs: number | null, waitMs: number): number {
  return retryAfterMs === null ? 0 : Math.min(Math.max(waitMs, retryAfterMs), MAX_RETRY_AFTER_MS);
}

/** Why a webhook must be paused after a failed attempt, as a sentence; null if it must not be paused. */
export function pauseReason(
  { failingSince, failures }: LaneHealth,
  nowMs: number,
  error: string | null,
): string | null {
  if (failingSince === null || nowMs - failingSince < PAUSE_AFTER_MS) return null;
  // For a rarely called webhook, five days without a success prove little: one attempt may have failed last week and
  // another today.
  if (failures < PAUSE_AFTER_FAILURES) return null;
  return (
    `No delivery has succeeded for five days, since ${new Date(failingSince).toISOString()}. Last attempt: ` +
    `${error ?? 'failed'}. Resume the webhook when its endpoint works again`
  );
}

/** For one in this many requests, retries or replays go first, so that live deliveries do not starve them. */
const LOWER_EVERY = 8;

/**
 * The class of the next delivery to send: live before retry before replay. Every eighth turn reverses the priority,
 * alternately in favor of retries and of replays.
 *
 * @param turn number of earlier requests of the lane
 * @param waiting number of loaded deliveries of each class
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

/**
 * The stored state of a circuit breaker, which explains why deliveries are held back. Times are in epoch milliseconds.
 */
export interface Breaker {
  /**
   * The state of the breaker. `closed` with a future `until` means that the endpoint asked for a pause with
   * `Retry-After`.
   */
  state: LaneHealth['state'];
  /** When deliveries were first held back. */
  since: number;
  /** Nothing is sent before this time. */
  until: number;
  /** Failed attempts in a row. */
  failures: number;
  /** When the breaker first opened since the last success; missing: it has not. */
  openedAt?: number;
}

/** Rests shorter than this are not stored, because they are over before anyone can read about them. */
const WORTH_WRITING_MS = 1_000;

/**
 * The breaker state to store after an attempt: null if deliveries are not held back.
 *
 * @param known the stored state
 */
export function breakerOf(health: LaneHealth, known: Breaker | null, nowMs: number): Breaker | null {
  const { state, restsUntil: until, failures, failingSince } = health;
  if (state === 'closed' && until - nowMs < WORTH_WRITING_MS) return null;
  const breaker = { state, since: known?.since ?? nowMs, until, failures };
  const openedAt = known?.openedAt ?? (state === 'open' ? nowMs : undefined);
  return failingSince === null || openedAt === undefined ? breaker : { ...breaker, openedAt };
}

/** Whether two breaker states are so similar that the new state need not be stored. */
export function isSameBreaker(one: Breaker | null, other: Breaker | null): boolean {
  if (one === null || other === null) return one === other;
  return (
    one.state === other.state &&
    one.openedAt === other.openedAt &&
    Math.abs(one.until - other.until) < WORTH_WRITING_MS
  );
}

/** Whether a breaker has opened for the first time since the last success. @param before the stored state until now */
export function hasJustOpened(breaker: Breaker | null, before: Breaker | null): breaker is Breaker {
  return breaker?.state === 'open' && before?.state !== 'open' && before?.openedAt !== breaker.openedAt;
}

/** Why deliveries are held back, as a sentence without a period; null if they are not. */
export function breakerReason({ state, until, failures }: Breaker, nowMs: number): string | null {
  switch (state) {
    case 'closed':
      return until > nowMs ? 'The endpoint asked for a pause (Retry-After)' : null;
    case 'half_open':
      return 'The endpoint responds again. Flowhook sends it few concurrent requests until several requests in a row have succeeded';
    case 'open':
      return failures >= MAX_FAULTS
        ? `The endpoint has failed ${failures} times in a row`
        : 'At least half of the attempts within a minute have failed';
  }
}

/**
 * A token bucket that limits the rate of requests to a webhook: the number of tokens that it had at the time `at`, in
 * epoch milliseconds.
 */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export const FULL_BUCKET: Bucket = { tokens: Number.POSITIVE_INFINITY, at: 0 };

/** Corrects a bucket that was last used before the clock was set back: its tokens then count from the current time. */
export function asOf(bucket: Bucket, nowMs: number): Bucket {
  return bucket.at > nowMs ? { ...bucket, at: nowMs } : bucket;
}

/**
 * Adds the tokens earned since the last refill. The bucket holds the tokens earned in 0.1 s, but at least one token.
 */
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
