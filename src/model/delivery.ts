/**
 * A delivery: one event on its way to one webhook, and the rules that decide what happens after an attempt.
 *
 *     waiting ──2xx──▶ delivered
 *        │  ▲
 *        │  └──anything else, while the schedule lasts
 *        │  ▲
 *        │  └──asked to be sent now: due at once
 *        ├──schedule used up──▶ dead
 *        ├──waited too long (about four days: paused, or tried and behind others)──▶ dead
 *        └──unsubscribed, 410──▶ canceled
 *
 * Being in flight is never stored: after a crash the row is simply still waiting.
 */

export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'canceled'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** What a replay sends unless told: everything that has not arrived. What is canceled belongs to a webhook that is gone. */
export const NOT_ARRIVED: readonly DeliveryState[] = ['waiting', 'dead'];

/** Why a delivery exists. A replay and a test go to one webhook alone, whatever it has subscribed. */
export const DELIVERY_ORIGINS = ['event', 'test', 'replay'] as const;
export type DeliveryOrigin = (typeof DELIVERY_ORIGINS)[number];

/** In the order in which a lane sends them: new events, further attempts, replays. */
export const DELIVERY_CLASSES = ['live', 'retry', 'replay'] as const;
export type DeliveryClass = (typeof DELIVERY_CLASSES)[number];

/** Waits before attempt 1, 2, 3 …, in milliseconds: the example schedule of Standard Webhooks 1.0. */
export const RETRY_SCHEDULE_MS: readonly number[] = [
  0,
  5_000,
  5 * 60_000,
  30 * 60_000,
  2 * 3_600_000,
  5 * 3_600_000,
  10 * 3_600_000,
  14 * 3_600_000,
  20 * 3_600_000,
  24 * 3_600_000,
];

/** Up to this share is added to every wait. */
const MAX_JITTER = 0.2;

/** A delivery that still waits after this long is given up: by then the whole schedule, jitter included, is over. */
export const EXPIRE_MS = RETRY_SCHEDULE_MS.reduce((sum, ms) => sum + ms, 0) * (1 + MAX_JITTER) + 3_600_000;

export const ATTEMPT_OUTCOMES = [
  'ok',
  'http',
  'timeout',
  'dns',
  'connect',
  'tls',
  'blocked',
  'protocol',
] as const;
/** The outcome of one request; `http` is an answer other than 2xx. */
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** One request, as it is logged. Times in epoch milliseconds. */
export interface Attempt {
  startedAt: number;
  durationMs: number;
  outcome: AttemptOutcome;
  status: number | null;
  /** A sentence on what went wrong; null after a success. */
  error: string | null;
  /** The first 2 KiB of the answer. */
  response: string | null;
  /** Null in logs of earlier versions. */
  details: AttemptDetails | null;
}

/** Headers as they were sent and received, without secrets, and where the time went. */
export interface AttemptDetails {
  url: string;
  requestHeaders: Record<string, string>;
  responseHeaders: Record<string, string>;
  /** The address that the connection ended at; null when there was none. */
  remoteAddress: string | null;
  /**
   * Milliseconds: the wait in the lane, then from the start of the attempt until each step was done; null for a step
   * that was not reached, or not needed because a connection was open.
   */
  timing: {
    queuedMs: number;
    dnsMs: number | null;
    connectMs: number | null;
    tlsMs: number | null;
    firstByteMs: number | null;
  };
}

/** A delivery that is due, with everything that sending it needs. */
export interface DueDelivery {
  teamId: string;
  id: string;
  webhookId: string;
  origin: DeliveryOrigin;
  class: DeliveryClass;
  /** Attempts made so far. */
  attempt: number;
  /** When it was due. */
  dueAt: number;
  createdAt: number;
  eventId: string;
  eventType: string;
  /** The event's place among those of its team. */
  sequence: number;
  /** The exact bytes to sign and to send. */
  body: string;
  /** How often events of its team had been rewritten when it was loaded. */
  rewrites: number;
  /** The trace of its event, as `traceparent`. */
  trace: string | null;
}

/**
 * The log of an attempt whose event an erasure rewrote while it was under way, without the answer: that may repeat what
 * was erased.
 */
export function withoutAnswer<Log extends Pick<Attempt, 'status' | 'error' | 'response' | 'details'>>(
  log: Log,
): Log {
  if (log.status === null) return log;
  return {
    ...log,
    error: log.error === null ? null : `Answered ${log.status}. What it said was erased`,
    response: null,
    details: log.details === null ? null : { ...log.details, responseHeaders: {} },
  };
}

/** What is written after an attempt. */
export type NextStep =
  | { state: 'delivered' }
  | { state: 'waiting'; nextAt: number }
  | { state: 'dead' }
  /** The endpoint answered 410: it is unsubscribed, and all that waits for it is canceled. */
  | { state: 'canceled' };

/** A longer `Retry-After` counts as this long. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** No delivery waits this long: one that seems to was dated before the clock was set back, and is due. */
export const LONGEST_WAIT_MS = Math.ceil(Math.max(...RETRY_SCHEDULE_MS) * (1 + MAX_JITTER)) + 3_600_000;

/**
 * Decides what follows an attempt.
 *
 * @param attempt attempts made, including this one
 * @param random in [0, 1): 0–20 % are added to a wait, so that a retry is never early
 * @param retryAfterMs what the endpoint asked for; null when it asked for nothing
 */
export function afterAttempt(input: {
  outcome: AttemptOutcome;
  status: number | null;
  attempt: number;
  nowMs: number;
  random: number;
  retryAfterMs: number | null;
}): NextStep {
  if (input.outcome === 'ok') return { state: 'delivered' };
  if (input.status === 410) return { state: 'canceled' };
  const waitMs = RETRY_SCHEDULE_MS[input.attempt];
  if (waitMs === undefined) return { state: 'dead' };
  const askedMs = Math.min(input.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return {
    state: 'waiting',
    nextAt: Math.round(input.nowMs + Math.max(waitMs * (1 + MAX_JITTER * input.random), askedMs)),
  };
}
