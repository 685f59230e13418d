/** The health of a webhook, in numbers and words. */
import type { Delivery, Usage, WebhookDetail } from 'flowhook-client';

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
