/** How a webhook stands, why a delivery waits, and how a replay is watched. */
import type { Delivery, Replay, Usage, WebhookDetail } from 'flowhook-client';
import { restMs } from '../../queries/read-again.ts';

export interface Health {
  delivered: number;
  failedAttempts: number;
  /** Given up. */
  dead: number;
  /** Of all attempts, 0 to 1; null when there were none. */
  success: number | null;
  /** Of the newest hour in which something was delivered: milliseconds of the 95th of 100 answers. */
  p95Ms: number | null;
}

export function healthOf(usage: Usage): Health {
  const health: Health = { delivered: 0, failedAttempts: 0, dead: 0, success: null, p95Ms: null };
  for (const { deliveries } of usage.buckets) {
    if (deliveries === undefined) continue;
    health.delivered += deliveries.delivered;
    health.failedAttempts += deliveries.failedAttempts;
    health.dead += deliveries.dead;
    health.p95Ms = deliveries.latencyMs.p95 ?? health.p95Ms;
  }
  const attempts = health.delivered + health.failedAttempts;
  if (attempts > 0) health.success = health.delivered / attempts;
  return health;
}

/** `100 %`, `98.3 %`: rounded down, so that a failure is never rounded away. */
export function percent(share: number): string {
  const tenths = Math.floor(share * 1_000 + 1e-9);
  return `${tenths % 10 === 0 ? tenths / 10 : (tenths / 10).toFixed(1)} %`;
}

/** Its state, since when, and why. */
export function standing(
  webhook: Pick<WebhookDetail, 'state' | 'pausedAt' | 'pausedReason' | 'failingSince'>,
): {
  state: 'active' | 'failing' | 'paused';
  since: string | null;
  why: string | null;
} {
  const { state, pausedAt, pausedReason, failingSince } = webhook;
  if (state === 'paused') return { state, since: pausedAt, why: pausedReason };
  if (failingSince !== null) return { state: 'failing', since: failingSince, why: null };
  return { state, since: null, why: null };
}

/** Without `workflow_`, which almost all types begin with. */
export function shortEvent(type: string): string {
  return type.startsWith('workflow_') ? type.slice('workflow_'.length) : type;
}

/** What the newest attempt that failed came to, of some deliveries. */
export function lastWords(deliveries: readonly Pick<Delivery, 'lastAttempt'>[]): string | null {
  const failed = deliveries.flatMap(({ lastAttempt }) =>
    lastAttempt === null || lastAttempt.outcome === 'ok' ? [] : [lastAttempt],
  );
  return failed.sort((a, b) => b.at.localeCompare(a.at))[0]?.message ?? null;
}

/** Why a delivery that waits is not sent now, and when the next attempt goes out. */
export interface Wait {
  /** A sentence without a full stop, in the words of the service or ours; null: it merely waits for its next attempt. */
  why: string | null;
  /**
   * When the next attempt goes out, of this delivery or of one before it: ISO 8601; null: not known, or not before the
   * webhook is resumed.
   */
  at: string | null;
}

/**
 * @param webhook undefined: it is gone, or not read yet
 * @returns undefined when it is about to be sent
 */
export function waitOf(
  delivery: Pick<Delivery, 'state' | 'nextAttemptAt' | 'lastAttempt'>,
  webhook: Pick<WebhookDetail, 'state' | 'settings' | 'breaker' | 'failingSince'> | undefined,
  nowMs: number,
): Wait | undefined {
  const { state, nextAttemptAt } = delivery;
  if (state !== 'waiting') return undefined;
  if (webhook?.state === 'paused') return { why: 'The webhook is paused', at: null };
  const { breaker } = webhook ?? {};
  if (breaker !== undefined && breaker.reason !== null) {
    return { why: breaker.reason, at: laterOf(nextAttemptAt, breaker.nextAttemptAt) };
  }
  if (isAfter(nextAttemptAt, nowMs)) return { why: null, at: nextAttemptAt };
  if (webhook?.settings.ordered === true && webhook.failingSince !== null) {
    return {
      why: 'A delivery before it failed, and this webhook sends one after the other',
      at: breaker?.nextAttemptAt ?? null,
    };
  }
  const rate = webhook?.settings.ratePerSecond ?? null;
  if (rate !== null) return { why: `It waits for its turn: at most ${rate} requests a second`, at: null };
  return undefined;
}

/** Whether a time is still to come; its attempt may go out a moment later. */
export function isAfter(time: string | null, nowMs: number): boolean {
  return time !== null && Date.parse(time) > nowMs;
}

function laterOf(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return Date.parse(one) > Date.parse(other) ? one : other;
}

/** How many readings come soon after one another. Attempts of what is held back may take hours. */
const SOON = 60;
const SOON_MS = 1_000;
const LATER_MS = 5_000;

type Looked = Pick<Replay, 'state'> & { outcome: Pick<Replay['outcome'], 'underWay'> };

/** Whether nothing of it will change any more. */
export function isOver({ state, outcome }: Looked): boolean {
  return state === 'done' && outcome.underWay === 0;
}

/**
 * Milliseconds from the beginning of a reading to the next one; false: there is none.
 *
 * @param input.replay undefined: it was not read yet
 * @param input.tookMs how long the reading took: of 100,000 deliveries it costs the service half a second
 * @param input.looks how often it was read
 */
export function lookAgainMs({
  replay,
  tookMs,
  looks,
}: {
  replay: Looked | undefined;
  tookMs: number;
  looks: number;
}): number | false {
  if (replay !== undefined && isOver(replay)) return false;
  return tookMs + restMs({ tookMs, leastMs: looks < SOON ? SOON_MS : LATER_MS });
}
