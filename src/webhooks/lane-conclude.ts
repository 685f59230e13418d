/** Concludes an attempt: what follows for its delivery, for its lane and for its webhook. */

import { afterAttempt, type DueDelivery } from '../model/delivery.ts';
import { breakerOf, isSameBreaker, learn, pauseReason, restAfter, verdictOf } from '../model/lane.ts';
import type { Observer } from '../observe/observer.ts';
import type { Traced } from '../observe/trace-context.ts';
import type { Settlement } from '../store/operations/settle.ts';
import type { Lane } from './lane.ts';
import type { Sent } from './send.ts';

/** A continued success is written down for the webhook this often at most. */
const WRITE_WELL_EVERY_MS = 60_000;
/** A lane that rests longer than this gives its queue back. */
const LONG_REST_MS = 1_000;

export interface Conclusion {
  /** To be written by the settler. */
  settlement: Settlement;
  /** Whether the lane must give back what it has queued. */
  drops: boolean;
  /** Why the webhook is to be paused, or null. */
  pauses: string | null;
}

/** Decides what follows, updates the health of the lane, and reports the attempt to the observer. */
export function conclude(input: {
  lane: Lane;
  delivery: DueDelivery;
  sent: Sent;
  traced: Traced;
  /** Whether it was the probe of an open circuit breaker. */
  probe: boolean;
  nowMs: number;
  random: number;
  observer: Observer;
}): Conclusion {
  const { lane, delivery, sent, probe, nowMs, random } = input;
  const { attempt, retryAfterMs } = sent;
  const { outcome, status, durationMs: tookMs, error } = attempt;
  const number = delivery.attempt + 1;
  const next = afterAttempt({ outcome, status, attempt: number, nowMs, random, retryAfterMs });

  const before = lane.health;
  const verdict = verdictOf(attempt);
  const restMs = restAfter(retryAfterMs, next.state === 'waiting' ? next.nextAt - nowMs : 0);
  lane.health = learn(before, { verdict, tookMs, probe, restMs, nowMs, random });
  let health: Settlement['health'] = null;
  if (verdict !== 'well') health = before.failingSince === null ? 'failing' : null;
  else if (before.failingSince !== null || Math.abs(nowMs - lane.wellAt) >= WRITE_WELL_EVERY_MS)
    health = 'well';
  if (health === 'well') lane.wellAt = nowMs;
  const breaker = breakerOf(lane.health, lane.breaker, nowMs);
  const isNews = !isSameBreaker(breaker, lane.breaker);
  if (isNews) lane.breaker = breaker;

  const { teamId, id: deliveryId, webhookId, eventId, eventType } = delivery;
  input.observer.deliveryAttemptDone?.({
    teamId,
    webhookId,
    eventId,
    eventType,
    deliveryId,
    attempt: number,
    server: sent.server,
    outcome,
    status,
    error,
    next: next.state,
    nextAt: next.state === 'waiting' ? next.nextAt : null,
    circuit: before.state === lane.health.state ? null : lane.health.state,
    restsUntil: lane.health.restsUntil > nowMs ? lane.health.restsUntil : null,
    startedAt: attempt.startedAt,
    durationMs: tookMs,
    waitedMs: attempt.details?.timing.queuedMs ?? 0,
    ...input.traced,
  });
  const isLongRest = lane.health.restsUntil - nowMs > LONG_REST_MS;
  return {
    settlement: {
      teamId,
      deliveryId,
      webhookId,
      epoch: lane.due.epoch,
      attempt: number,
      rewrites: delivery.rewrites,
      log: attempt,
      next,
      health,
      breaker: isNews ? breaker : undefined,
    },
    drops: next.state === 'canceled' || isLongRest || (lane.ordered && next.state === 'waiting'),
    pauses: next.state === 'canceled' ? null : pauseReason(lane.health, nowMs, error),
  };
}
