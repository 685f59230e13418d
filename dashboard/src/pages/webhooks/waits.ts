/** Why a delivery that waits is not sent now, and when the next attempt goes out. */
import type { Delivery, WebhookDetail } from 'flowhook-client';

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
