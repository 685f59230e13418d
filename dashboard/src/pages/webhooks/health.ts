/** The health of a webhook, why a delivery waits, and how often the progress of a replay is polled. */
import type { Delivery, Replay, Usage, WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { restMs } from '../../queries/read-again.ts';

export interface Health {
  delivered: number;
  failedAttempts: number;
  /** Deliveries that were given up. */
  dead: number;
  /** The share of successful attempts, 0 to 1; null without attempts. */
  success: number | null;
  /** The 95th percentile of response times in the latest hour with deliveries, in milliseconds. */
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

/** `100%`, `98.3%`: rounded down, so that 100% means no failures. */
export function percent(share: number): string {
  const tenths = Math.floor(share * 1_000 + 1e-9);
  return `${tenths % 10 === 0 ? tenths / 10 : (tenths / 10).toFixed(1)}%`;
}

/** The state of a webhook, since when, and why. */
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

/** An event type without the prefix `workflow_`, which most types have. */
export function shortEvent(type: string): string {
  return type.startsWith('workflow_') ? type.slice('workflow_'.length) : type;
}

/** The message of the latest failed attempt among some deliveries. */
export function lastFailure(deliveries: readonly Pick<Delivery, 'lastAttempt'>[]): string | null {
  const failed = deliveries.flatMap(({ lastAttempt }) =>
    lastAttempt === null || lastAttempt.outcome === 'ok' ? [] : [lastAttempt],
  );
  return failed.sort((a, b) => b.at.localeCompare(a.at))[0]?.message ?? null;
}

/** Why a waiting delivery is not sent now, and when the next attempt is due. */
export interface Wait {
  /** A sentence without a period; null if the delivery only waits for its next scheduled attempt. */
  why: string | null;
  /**
   * When the next attempt is due, of this delivery or of one before it, in ISO 8601; null if unknown or if the webhook is
   * paused.
   */
  at: string | null;
}

/**
 * @param webhook undefined if it was deleted or is still loading
 * @returns undefined if the delivery is sent now
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
      why: 'An earlier delivery failed, and this webhook delivers in order',
      at: breaker?.nextAttemptAt ?? null,
    };
  }
  const rate = webhook?.settings.ratePerSecond ?? null;
  if (rate !== null) return { why: `The rate limit allows ${rate} requests per second`, at: null };
  return undefined;
}

/** Whether a time is in the future. */
export function isAfter(time: string | null, nowMs: number): boolean {
  return time !== null && Date.parse(time) > nowMs;
}

function laterOf(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return Date.parse(one) > Date.parse(other) ? one : other;
}

/**
 * The number of frequent polls at the start. Later polls are less frequent, because a webhook that backs off may take
 * hours.
 */
const SOON = 60;
const SOON_MS = 1_000;
const LATER_MS = 5_000;

type Polled = Pick<Replay, 'state'> & { outcome: Pick<Replay['outcome'], 'underWay'> };

/** Whether the replay and all its deliveries have ended. */
export function isOver({ state, outcome }: Polled): boolean {
  return state === 'done' && outcome.underWay === 0;
}

/**
 * Milliseconds from the start of one poll to the next; false ends polling.
 *
 * @param input.replay undefined before the first poll
 * @param input.tookMs duration of the last poll: with 100,000 deliveries it takes the service half a second
 * @param input.polls number of polls so far
 */
export function pollAfterMs({
  replay,
  tookMs,
  polls,
}: {
  replay: Polled | undefined;
  tookMs: number;
  polls: number;
}): number | false {
  if (replay !== undefined && isOver(replay)) return false;
  return tookMs + restMs({ tookMs, leastMs: polls < SOON ? SOON_MS : LATER_MS });
}
