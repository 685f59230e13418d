/** Changes of an existing webhook: rotating its secret, changing settings, pausing, sending a test event. */
import { pausedData, testData } from '../../model/event.ts';
import type { Webhook, WebhookSettings } from '../../model/webhook.ts';
import type { IdempotencyKey } from '../idempotent-call.ts';
import type { Tx } from '../sql.ts';
import type { WebhookOperations } from '../webhook-operations.ts';
import { appendEvent, appendTestEvent } from './events.ts';
import { once } from './idempotency.ts';
import { changed, get, type Target, type WebhookRow } from './webhooks.ts';

export async function rotate(
  tx: Tx,
  { teamId, id, secret, overlapMs }: Target & { secret: string; overlapMs: number },
): Promise<Webhook | undefined> {
  const row = await tx.db.get<WebhookRow>(
    // After two rotations within one overlap, receivers may only know the first secret, which goes on signing.
    `update webhook set
       previous_secret = case
         when $1::bigint = 0 then null
         when previous_secret is not null and previous_until > $2 then previous_secret
         else secret end,
       previous_until = case when previous_until > $2 then greatest(previous_until, $2 + $1) else $2 + $1 end,
       secret = $3
     where team_id = $4 and id = $5 and state <> 'deleted' returning *`,
    overlapMs,
    tx.now,
    secret,
    teamId,
    id,
  );
  return changed(tx, row);
}

export async function change(
  tx: Tx,
  input: Parameters<WebhookOperations['change']>[0],
): Promise<Webhook | undefined> {
  const { teamId, id, settings = {}, headers, expected } = input;
  const row = await tx.db.get<WebhookRow>`
    select * from webhook where team_id = ${teamId} and id = ${id} and state <> 'deleted' for no key update`;
  if (row === undefined) return undefined;
  const before = JSON.parse(row.settings) as WebhookSettings;
  if (expected !== undefined) {
    const isSame = JSON.stringify(before) === JSON.stringify(expected.settings);
    if (!isSame || row.headers !== expected.headers) return undefined;
  }
  return changed(
    tx,
    await tx.db.get<WebhookRow>`
      update webhook set settings = ${JSON.stringify({ ...before, ...settings })},
        headers = case when ${headers !== undefined} then ${headers ?? null} else headers end
      where team_id = ${teamId} and id = ${id} returning *`,
  );
}

export async function pause(
  tx: Tx,
  { teamId, id, reason }: Target & { reason: string },
): Promise<Webhook | undefined> {
  const row = await tx.db.get<WebhookRow>`
    update webhook set state = 'paused', paused_at = ${tx.now}, paused_reason = ${reason}
    where team_id = ${teamId} and id = ${id} and state = 'active' returning *`;
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

export async function test(
  tx: Tx,
  { teamId, id, idempotencyKey = null }: Target & { idempotencyKey?: IdempotencyKey },
): Promise<{ eventId: string; deliveryId: string } | undefined> {
  const webhook = await get(tx, { teamId, id });
  if (webhook === undefined) return undefined;
  const { workflowId } = webhook;
  const event = { teamId, workflowId, jobId: null, finishedAt: null, data: testData(id) };
  return once(tx, { teamId, operation: 'webhooks.test', target: id, idempotencyKey }, async () =>
    appendTestEvent(tx, { ...event, type: 'webhook_test' }, id),
  );
}
