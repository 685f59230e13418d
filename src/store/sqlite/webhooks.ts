/** Webhooks: subscribing, looking up, unsubscribing. `webhook-changes.ts` has what changes an existing one. */
import { DEFAULT_WEBHOOK_SETTINGS, eventSetKey, firesFor, type Webhook } from '../../model/webhook.ts';
import { newId } from '../../std/id.ts';
import { touchLane } from '../touched.ts';
import type { WebhookOperations } from '../webhook-operations.ts';
import { changed, toWebhook, type WebhookRow } from '../webhook-row.ts';
import { requireRoom } from './quotas.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof WebhookOperations> = Parameters<WebhookOperations[Name]>[0];
type Result<Name extends keyof WebhookOperations> = Awaited<ReturnType<WebhookOperations[Name]>>;

export function subscribe(tx: Tx, input: Input<'subscribe'>): Result<'subscribe'> {
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

/** Ends a pause; also called by `subscribe`. */
export function resume(tx: Tx, { teamId, id }: Input<'resume'>): Webhook | undefined {
  const row = tx.db.get<WebhookRow>(
    `update webhook set state = 'active', paused_at = null, paused_reason = null, failing_since = null,
       breaker = null
     where team_id = ? and id = ? and state = 'paused' returning *`,
    teamId,
    id,
  );
  if (row !== undefined) return changed(tx, row);
  tx.repeated = true;
  return get(tx, { teamId, id });
}

// Names the indexes of webhooks that are not deleted, because the planner would scan all of the team's. By the second
// one, only the ids of those that match are sorted, and only those of the page looked up.
const LISTED = `
  select * from webhook indexed by webhook_listed
  where team_id = ? and id > ? and state <> 'deleted' order by id limit ?`;
const MATCHING = (condition: string) => `
  select * from webhook where rowid in (
    select rowid from webhook indexed by webhook_same
    where team_id = ?1 and state <> 'deleted' and ${condition} and id > ?2 order by id limit ?3)
  order by id`;
const OF_A_WORKFLOW = MATCHING(`coalesce(workflow_id, '') = ?4`);
const WITH_URL = MATCHING('url = ?4');
const OF_A_WORKFLOW_WITH_URL = MATCHING(`coalesce(workflow_id, '') = ?4 and url = ?5`);

export function list(view: View, { teamId, workflowId, url, after = '', limit }: Input<'list'>): Webhook[] {
  const page = [teamId, after, limit];
  const rows =
    workflowId === undefined
      ? url === undefined
        ? view.db.all<WebhookRow>(LISTED, ...page)
        : view.db.all<WebhookRow>(WITH_URL, ...page, url)
      : url === undefined
        ? view.db.all<WebhookRow>(OF_A_WORKFLOW, ...page, workflowId)
        : view.db.all<WebhookRow>(OF_A_WORKFLOW_WITH_URL, ...page, workflowId, url);
  return rows.map(toWebhook);
}

export function get(view: View, { teamId, id }: Input<'get'>): Webhook | undefined {
  const row = view.db.get<WebhookRow>(
    `select * from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  );
  return row && toWebhook(row);
}

export function unsubscribe(tx: Tx, { teamId, ids }: Input<'unsubscribe'>): number {
  return ids.filter((id) => removeWebhook(tx, teamId, id)).length;
}

/**
 * Marks a webhook as deleted, so that no more of its deliveries are loaded, and cancels as many of them as this
 * transaction may. Returns whether it existed.
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
  // Makes the sender drop what it has in memory for it.
  touchLane(tx, teamId, id);
  return true;
}

/** Cancels waiting deliveries of a webhook, as many as this transaction may. */
export function cancelWaiting(tx: Tx, teamId: string, webhookId: string): void {
  // Names the index, because the planner would scan all deliveries of the team.
  tx.cancelsLeft -= tx.db.run(
    `update delivery set state = 'canceled', next_at = null where (team_id, id) in
       (select team_id, id from delivery indexed by delivery_due
        where team_id = ? and webhook_id = ? and state = 'waiting' limit ?)`,
    teamId,
    webhookId,
    tx.cancelsLeft,
  );
}

export function secret(view: View, { teamId, id }: Input<'secret'>): string | undefined {
  return view.db.get<{ secret: string }>(
    `select secret from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  )?.secret;
}

export function headers(view: View, { teamId, id }: Input<'headers'>): string | null | undefined {
  return view.db.get<{ headers: string | null }>(
    `select headers from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  )?.headers;
}
