/**
 * A delivery: one event on its way to one webhook, and the rules that decide what happens after an attempt.
 *
 *     waiting ──2xx──▶ delivered
 *        │  ▲
 *        │  └──anything else, while the schedule lasts
 *        ├──schedule used up──▶ dead
 *        └──unsubscribed, 410──▶ canceled
 *
 * Being in flight is never stored: after a crash the row is simply still waiting.
 */

export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'canceled'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

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
/** What one request came to; `http` is an answer that is not 2xx. */
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
}

/** A delivery that is due, with all that sending it needs. */
export interface DueDelivery {
  teamId: string;
  id: string;
  webhookId: string;
  /** Attempts made so far. */
  attempt: number;
  eventId: string;
  eventType: string;
  /** The exact bytes to sign and to send. */
  body: string;
}

/** What is written after an attempt. */
export type NextStep =
  | { state: 'delivered' }
  | { state: 'waiting'; nextAt: number }
  | { state: 'dead' }
  /** The endpoint answered 410: it is unsubscribed, and all that waits for it is canceled. */
  | { state: 'canceled' };

/**
 * Decides what follows an attempt.
 *
 * @param attempt attempts made, including this one
 * @param random in [0, 1): 0–20 % are added to a wait, so that a retry is never early
 */
export function afterAttempt(input: {
  outcome: AttemptOutcome;
  status: number | null;
  attempt: number;
  nowMs: number;
  random: number;
}): NextStep {
  if (input.outcome === 'ok') return { state: 'delivered' };
  if (input.status === 410) return { state: 'canceled' };
  const waitMs = RETRY_SCHEDULE_MS[input.attempt];
  if (waitMs === undefined) return { state: 'dead' };
  return { state: 'waiting', nextAt: Math.round(input.nowMs + waitMs * (1 + 0.2 * input.random)) };
}
