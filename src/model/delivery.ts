/**
 * A delivery sends one event to one webhook. This file has its states, and the rules that decide what follows an
 * attempt.
 *
 *     waiting ──2xx──▶ delivered
 *        │  ▲
 *        │  └──any other outcome, while attempts are left
 *        │  ▲
 *        │  └──"send now": due immediately
 *        ├──last attempt failed, or a mail was refused permanently (SMTP 5xx)──▶ dead
 *        ├──waited about four days (webhook paused, or queued behind others)──▶ dead
 *        └──unsubscribed, 410──▶ canceled
 *
 * Whether an attempt is running is never stored: after a crash, the delivery is still `waiting`.
 */

export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'canceled'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * The states of deliveries that a replay sends again by default. Canceled deliveries are excluded, because their
 * webhooks are unsubscribed.
 */
export const NOT_ARRIVED: readonly DeliveryState[] = ['waiting', 'dead'];

/** Replays and tests are sent to one webhook, even if it does not subscribe to the event type. */
export const DELIVERY_ORIGINS = ['event', 'test', 'replay'] as const;
export type DeliveryOrigin = (typeof DELIVERY_ORIGINS)[number];

/** The classes of deliveries in a lane, highest priority first: new events, further attempts, replays. */
export const DELIVERY_CLASSES = ['live', 'retry', 'replay'] as const;
export type DeliveryClass = (typeof DELIVERY_CLASSES)[number];

/** Delays before attempt 1, 2, 3 …, in milliseconds: the example schedule of Standard Webhooks 1.0. */
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

/** Every delay is extended by a random share, at most this much. */
const MAX_JITTER = 0.2;

/**
 * A delivery that is still waiting at this age becomes `dead`. Even with maximum jitter, all attempts are made earlier.
 */
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
  'smtp',
] as const;
/**
 * The outcome of one attempt; `http` is a response with a status other than 2xx. `smtp` is a reply to a mail other than
 * 2xx; a reply before the mail, such as to a wrong password, is `connect`, because it says nothing about the mail.
 */
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** The log entry of one request. Times are in epoch milliseconds. */
export interface Attempt {
  startedAt: number;
  durationMs: number;
  outcome: AttemptOutcome;
  /** HTTP status, or the code of an SMTP reply. Null if there was none. */
  status: number | null;
  /** Human-readable error; null after a success. */
  error: string | null;
  /** The first 2 KiB of the response body. */
  response: string | null;
  details: AttemptDetails | null;
}

/** Sent and received headers, without secrets, and timings. */
export interface AttemptDetails {
  url: string;
  requestHeaders: Record<string, string>;
  responseHeaders: Record<string, string>;
  /** The IP address of the receiver; null if no connection was made. */
  remoteAddress: string | null;
  /**
   * In milliseconds: the time spent queued in the lane, then the time from the start of the attempt to the end of
   * each step. Null for steps that were not reached, or not needed because a connection was reused.
   */
  timing: {
    queuedMs: number;
    dnsMs: number | null;
    connectMs: number | null;
    tlsMs: number | null;
    firstByteMs: number | null;
  };
}

/** A due delivery with all the data that sending it requires. */
export interface DueDelivery {
  teamId: string;
  id: string;
  webhookId: string;
  origin: DeliveryOrigin;
  class: DeliveryClass;
  attempt: number;
  dueAt: number;
  createdAt: number;
  eventId: string;
  /** The id that is sent: that of the event, or that of a message of its own. */
  messageId: string;
  eventType: string;
  /** The event's position among the events of its team. */
  sequence: number;
  /** The exact body to sign and send. */
  body: string;
  /** How many times erasures had rewritten events of the team when the delivery was loaded. */
  rewrites: number;
  /** The event's trace, as `traceparent`. */
  trace: string | null;
}

/** The media type of a body. Only the structured mode of CloudEvents begins like this (`shapedBody` in `shape.ts`). */
export function mediaTypeOf(body: string): string {
  return body.startsWith('{"specversion":') ? 'application/cloudevents+json' : 'application/json';
}

/**
 * Removes the response from the log of an attempt. Used if an erasure rewrote the event during the attempt, because the
 * receiver may have echoed the erased data.
 */
export function withoutResponse<Log extends Pick<Attempt, 'status' | 'error' | 'response' | 'details'>>(
  log: Log,
): Log {
  if (log.status === null) return log;
  return {
    ...log,
    error: log.error === null ? null : `HTTP ${log.status}: the response was erased`,
    response: null,
    details: log.details === null ? null : { ...log.details, responseHeaders: {} },
  };
}

/** The state of a delivery after an attempt. */
export type NextStep =
  | { state: 'delivered' }
  | { state: 'waiting'; nextAt: number }
  | { state: 'dead' }
  /** The endpoint returned 410: the webhook is unsubscribed, and its waiting deliveries are canceled. */
  | { state: 'canceled' };

/** A `Retry-After` header that asks for more counts as this much. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * No delivery waits longer than this for its next attempt. A later `next_at` was computed before the clock was set
 * back, and counts as due.
 */
export const LONGEST_WAIT_MS = Math.ceil(Math.max(...RETRY_SCHEDULE_MS) * (1 + MAX_JITTER)) + 3_600_000;

/**
 * Decides what follows an attempt.
 *
 * @param attempt number of attempts made, including this one
 * @param random in [0, 1): extends the delay by 0–20 %, so that a retry is never early
 * @param retryAfterMs value of the endpoint's `Retry-After` header; null if there was none
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
  if (input.outcome === 'smtp' && isFinalReply(input.status)) return { state: 'dead' };
  if (input.status === 410) return { state: 'canceled' };
  const waitMs = RETRY_SCHEDULE_MS[input.attempt];
  if (waitMs === undefined) return { state: 'dead' };
  const askedMs = Math.min(input.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return {
    state: 'waiting',
    nextAt: Math.round(input.nowMs + Math.max(waitMs * (1 + MAX_JITTER * input.random), askedMs)),
  };
}

/**
 * Whether an SMTP server refused a mail permanently. 503 says that the conversation went wrong, and 4xx asks to try again
 * later.
 */
function isFinalReply(status: number | null): boolean {
  return status !== null && status >= 500 && status < 600 && status !== 503;
}
