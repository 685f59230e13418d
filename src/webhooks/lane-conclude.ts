/** What follows from an attempt: for its delivery, for its lane, for its webhook. */
import { afterAttempt, type DueDelivery } from '../model/delivery.ts';
import { learn, pauseReason, restAfter, verdictOf } from '../model/lane.ts';
import type { Observer } from '../observe/observer.ts';
import type { Traced } from '../observe/trace-context.ts';
import type { Settlement } from '../store/webhook-operations.ts';
import type { Lane } from './lane.ts';
import type { Sent } from './send.ts';

/** That a webhook is well is written down so often at most. */
const WELL_EVERY_MS = 60_000;
/** A lane that rests for longer gives its queue back meanwhile. */
const LONG_REST_MS = 1_000;

export interface Concluded {
  settlement: Settlement;
  /** Whether what the lane has queued is to be given back. */
  drops: boolean;
  /** Why the webhook is to be paused, or null. */
  pauses: string | null;
}

/** Decides, makes the lane remember, and tells of the attempt. */
export function conclude(input: {
  lane: Lane;
  delivery: DueDelivery;
  sent: Sent;
  traced: Traced;
  probe: boolean;
  nowMs: number;
  random: number;
  observer: Observer;
}): Concluded {
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
  else if (before.failingSince !== null || Math.abs(nowMs - lane.wellAt) >= WELL_EVERY_MS) health = 'well';
  if (health === 'well') lane.wellAt = nowMs;

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
  const isLong = lane.health.restsUntil - nowMs > LONG_REST_MS;
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
    },
    drops: next.state === 'canceled' || isLong || (lane.ordered && next.state === 'waiting'),
    pauses: next.state === 'canceled' ? null : pauseReason(lane.health, nowMs, error),
  };
}
