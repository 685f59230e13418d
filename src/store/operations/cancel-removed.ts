/** Cancels the deliveries that still wait for removed webhooks, when they are too many for one transaction. */
import { WAITING_LANES } from '../postgres/lanes.ts';
import type { Tx } from '../sql.ts';
import { cancelWaiting, type Target } from './webhooks.ts';

/** The maximum number of webhooks per transaction. */
const MAX_WEBHOOKS = 20;

const REMOVED_LANES = `
  ${WAITING_LANES}
  select webhook.team_id as "teamId", webhook.id
  from waiting_lane
  join webhook on webhook.team_id = waiting_lane.team_id and webhook.id = waiting_lane.webhook_id
  where webhook.state = 'deleted' order by webhook.team_id, webhook.id limit $1`;

/**
 * Cancels some of these deliveries; returns whether more may be left. It also finds those of an event that was written
 * while its webhook was being removed.
 */
export async function cancelRemoved(tx: Tx): Promise<{ more: boolean }> {
  const removed = await tx.db.all<Target>(REMOVED_LANES, MAX_WEBHOOKS);
  await Promise.all(removed.map((webhook) => cancelWaiting(tx, webhook)));
  return { more: removed.length > 0 };
}
