/** What is done about a webhook that cannot be served, or whose attempts cannot be written down. */
import type { DueDelivery } from '../model/delivery.ts';
import { Problem } from '../model/error.ts';
import type { Logger } from '../observe/log.ts';
import type { Store } from '../store/store.ts';
import type { LaneName } from '../store/webhook-operations.ts';
import type { Lane } from './lane.ts';

/**
 * A lane whose secrets cannot be opened, or of which an attempt cannot be written down, rests for a minute; one whose
 * keys the store could not give, shortly.
 */
const REST_MS = 60_000;
const AWAY_REST_MS = 1_000;

/**
 * Neither the endpoint nor the delivery is at fault: it stays due, without an attempt used. The caller drops what the
 * lane has queued.
 *
 * @param input.error its cause is what went wrong
 */
export function noteUnsigned(
  lane: Lane,
  { id: deliveryId, teamId, webhookId }: DueDelivery,
  { error, nowMs, log }: { error: Error; nowMs: number; log: Logger },
): void {
  const isAway = error.cause instanceof Problem;
  lane.troubledUntil = nowMs + (isAway ? AWAY_REST_MS : REST_MS);
  if (!lane.unsignedSaid) {
    lane.unsignedSaid = !isAway;
    log.error({ err: error, teamId, webhookId, deliveryId }, 'delivery.not_signed');
  }
  lane.release(deliveryId);
  lane.mayHaveMore();
}

/**
 * What came of an attempt was given up unwritten, so its delivery is still due and will be sent again: not at once,
 * for it may well end the same way. The caller drops what the lane has queued.
 */
export function noteUnsettled(lane: Lane, deliveryId: string, nowMs: number): void {
  lane.troubledUntil = nowMs + REST_MS;
  lane.release(deliveryId);
  lane.mayHaveMore();
}

/** Never rejects: when the store is away, the next failure pauses the webhook. */
export async function pauseWebhook(
  store: Store,
  log: Logger,
  { teamId, webhookId: id, reason }: LaneName & { reason: string },
): Promise<void> {
  try {
    await store.webhooks.pause({ teamId, id, reason });
  } catch (error) {
    log.warn({ err: error, teamId, webhookId: id }, 'webhook.not_paused');
  }
}
