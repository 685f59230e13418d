/** Webhooks: who is subscribed to what. `webhook-changes.ts` has what may be done to one that is there. */

import {
  DEFAULT_WEBHOOK_SETTINGS,
  eventSetKey,
  firesFor,
  type Webhook,
  type WebhookSettings,
} from '../../model/webhook.ts';
import { newId } from '../../std/id.ts';
import { touchLane } from '../touched.ts';
import { changed, toWebhook, type WebhookRow } from '../webhook-row.ts';
import { requireRoom } from './quotas.ts';
import type { Tx, View } from './transaction.ts';

export interface Target {
  teamId: string;
  id: string;
}

export function subscribe(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    secret: string;
    limit: number;
    settings?: WebhookSettings;
  },
):
  | { outcome: 'created' | 'existing'; webhook: Webhook; resumed?: true }
  | { outcome: 'workflow_not_found' }
  | { outcome: 'limit_reached' } {
  const { teamId, workflowId, url, events, limit, settings = DEFAULT_WEBHOOK_SETTINGS } = input;
  const workflow = tx.db.get(
    'select 1 from workflow where team_id = ? and id = ? and archived_at is null',
    teamId,
    workflowId,
  );
  if (workflowId !== null && workflow === undefined) return { outcome: 'workflow_not_found' };

  const same = tx.db.get<WebhookRow>(
    `select * from webhook
     where team_id = ? and coalesce(workflow_id, '') = ? and url = ? and event_set = ? and state <> 'deleted'`,
    teamId,
    workflowId ?? '',
    url,
    eventSetKey(events),
  );
  if (same?.state === 'active') return { outcome: 'existing', webhook: toWebhook(same) };
  if (activeCount(tx, teamId, workflowId) >= limit) return { outcome: 'limit_reached' };
  if (same !== undefined) {
    return { outcome: 'existing', webhook: resume(tx, { teamId, id: same.id }) as Webhook, resumed: true };
  }

  requireRoom(tx, teamId, 'webhooks');
  const row = tx.db.get<WebhookRow>(
    `insert into webhook
       (team_id, id, workflow_id, url, events, event_set, fires_for, state, secret, settings, created_at)
     values (?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?) returning *`,
    teamId,
    newId('wh', tx.now),
    workflowId,
    url,
    JSON.stringify(events),
    eventSetKey(events),
    firesFor(events),
    input.secret,
    JSON.stringify(settings),
    tx.now,
  ) as WebhookRow;
  return { outcome: 'created', webhook: toWebhook(row) };
}

function activeCount(tx: Tx, teamId: string, workflowId: string | null): number {
  const row = tx.db.get<{ count: number }>(
    `select count(*) as count from webhook
     where team_id = ? and coalesce(workflow_id, '') = ? and state <> 'deleted' and state = 'active'`,
    teamId,
    workflowId ?? '',
  );
  return row?.count ?? 0;
}

/** Ends a pause; also `subscribe` does. */
export function resume(tx: Tx, { teamId, id }: Target): Webhook | undefined {
  const row = tx.db.get<WebhookRow>(
    `update webhook set state = 'active', paused_at = null, paused_reason = null, failing_since = null
     where team_id = ? and id = ? and state = 'paused' returning *`,
    teamId,
    id,
  );
  if (row !== undefined) return changed(tx, row);
  tx.repeated = true;
  return get(tx, { teamId, id });
}

// The index of those that are not deleted is named, because the planner would walk through all that ever were.
export function list(view: View, { teamId, workflowId }: { teamId: string; workflowId?: string }): Webhook[] {
  return view.db
    .all<WebhookRow>(
      `select * from webhook indexed by webhook_same
       where team_id = ? and (? is null or workflow_id = ?) and state <> 'deleted' order by created_at, id`,
      teamId,
      workflowId ?? null,
      workflowId ?? null,
    )
    .map(toWebhook);
}

export function get(view: View, { teamId, id }: Target): Webhook | undefined {
  const row = view.db.get<WebhookRow>(
    `select * from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  );
  return row && toWebhook(row);
}

export function byUrl(
  view: View,
  { teamId, url, workflowId }: { teamId: string; url: string; workflowId?: string },
): Webhook[] {
  return view.db
    .all<WebhookRow>(
      `select * from webhook indexed by webhook_same
       where team_id = ? and url = ? and (? is null or workflow_id = ?) and state <> 'deleted'
       order by created_at, id`,
      teamId,
      url,
      workflowId ?? null,
      workflowId ?? null,
    )
    .map(toWebhook);
}

export function unsubscribe(tx: Tx, { teamId, ids }: { teamId: string; ids: readonly string[] }): number {
  return ids.filter((id) => removeWebhook(tx, teamId, id)).length;
}

/**
 * Marks a webhook as deleted, so that nothing is loaded for it any more, and cancels what waits for it as far as
 * this transaction may; answers whether it was there.
 */
export function removeWebhook(tx: Tx, teamId: string, id: string): boolean {
  const removed = tx.db.run(
    `update webhook set state = 'deleted', deleted_at = ? where team_id = ? and id = ? and state <> 'deleted'`,
    tx.now,
    teamId,
    id,
  );
  if (removed === 0) return false;
  cancelWaiting(tx, teamId, id);
  // So that what is queued in memory for it is dropped.
  touchLane(tx, teamId, id);
  return true;
}

/** Cancels what waits for a webhook, as far as this transaction may. */
export function cancelWaiting(tx: Tx, teamId: string, webhookId: string): void {
  // The index is named, because the planner would walk through all deliveries of the team.
  tx.cancelable -= tx.db.run(
    `update delivery set state = 'canceled', next_at = null where (team_id, id) in
       (select team_id, id from delivery indexed by delivery_due
        where team_id = ? and webhook_id = ? and state = 'waiting' limit ?)`,
    teamId,
    webhookId,
    tx.cancelable,
  );
}

export function secret(view: View, { teamId, id }: Target): string | undefined {
  return view.db.get<{ secret: string }>(
    `select secret from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  )?.secret;
}

export function headers(view: View, { teamId, id }: Target): string | null | undefined {
  return view.db.get<{ headers: string | null }>(
    `select headers from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  )?.headers;
}
