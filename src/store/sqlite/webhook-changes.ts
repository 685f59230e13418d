/** Changing an existing webhook: secret, settings, pause; and testing it. */
import { pausedData, testData } from '../../model/event.ts';
import type { Webhook, WebhookSettings } from '../../model/webhook.ts';
import type { WebhookOperations } from '../webhook-operations.ts';
import { changed, type WebhookRow } from '../webhook-row.ts';
import { appendEvent, appendTestEvent } from './events.ts';
import { once } from './idempotency.ts';
import type { Tx } from './transaction.ts';
import { get } from './webhooks.ts';

type Input<Name extends keyof WebhookOperations> = Parameters<WebhookOperations[Name]>[0];
type Result<Name extends keyof WebhookOperations> = Awaited<ReturnType<WebhookOperations[Name]>>;

export function rotate(tx: Tx, { teamId, id, secret, overlapMs }: Input<'rotate'>): Webhook | undefined {
  const row = tx.db.get<WebhookRow>(
    // On a second rotation within an overlap the oldest secret stays: it is the one that receivers know.
    `update webhook set
       previous_secret = iif(?1 = 0, null, iif(previous_secret is not null and previous_until > ?2, previous_secret, secret)),
       previous_until = iif(previous_until > ?2, max(previous_until, ?2 + ?1), ?2 + ?1), secret = ?3
     where team_id = ?4 and id = ?5 and state <> 'deleted' returning *`,
    overlapMs,
    tx.now,
    secret,
    teamId,
    id,
  );
  return changed(tx, row);
}

export function change(tx: Tx, input: Input<'change'>): Webhook | undefined {
  const { teamId, id, settings = {}, headers, expected } = input;
  const row = tx.db.get<WebhookRow>(
    `select * from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    id,
  );
  if (row === undefined) return undefined;
  const before = JSON.parse(row.settings) as WebhookSettings;
  if (expected !== undefined) {
    const isSame = JSON.stringify(before) === JSON.stringify(expected.settings);
    if (!isSame || row.headers !== expected.headers) return undefined;
  }
  return changed(
    tx,
    tx.db.get<WebhookRow>(
      `update webhook set settings = ?, headers = iif(?, ?, headers) where team_id = ? and id = ? returning *`,
      JSON.stringify({ ...before, ...settings }),
      headers === undefined ? 0 : 1,
      headers ?? null,
      teamId,
      id,
    ),
  );
}

export function pause(tx: Tx, { teamId, id, reason }: Input<'pause'>): Webhook | undefined {
  const row = tx.db.get<WebhookRow>(
    `update webhook set state = 'paused', paused_at = ?, paused_reason = ?
     where team_id = ? and id = ? and state = 'active' returning *`,
    tx.now,
    reason,
    teamId,
    id,
  );
  if (row === undefined) {
    tx.repeated = true;
    return get(tx, { teamId, id });
  }
  const { workflow_id: workflowId, url } = row;
  const data = pausedData({ id, url, pausedAt: tx.now, reason });
  appendEvent(
    tx,
    { teamId, type: 'webhook_paused', workflowId, jobId: null, finishedAt: null, data },
    { exceptWebhookId: id },
  );
  return changed(tx, row);
}

export function test(tx: Tx, { teamId, id, idempotencyKey = null }: Input<'test'>): Result<'test'> {
  const webhook = get(tx, { teamId, id });
  if (webhook === undefined) return undefined;
  const { workflowId } = webhook;
  const event = { teamId, workflowId, jobId: null, finishedAt: null, data: testData(id) };
  return once(tx, { teamId, operation: 'webhooks.test', target: id, idempotencyKey }, () =>
    appendTestEvent(tx, { ...event, type: 'webhook_test' }, id),
  );
}
