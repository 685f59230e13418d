/** Changes of an existing webhook: rotating its secret, changing settings, pausing, sending a test event. */
import { pausedData, testData } from '../../model/event.ts';
import type { Webhook, WebhookSettings } from '../../model/webhook.ts';
import type { IdempotencyKey } from '../idempotent-call.ts';
import type { Tx } from '../sql.ts';
import { appendEvent, appendTestEvent } from './events.ts';
import { once } from './idempotency.ts';
import { changed, get, type Target, type WebhookRow } from './webhooks.ts';

/**
 * Replaces the secret; messages are signed with the previous one as well for `overlapMs` (0: at once no longer). On a
 * second rotation within an overlap the oldest secret stays valid, because receivers may not know the second.
 */
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

/** Changes settings or headers; what is not given stays. `headers` is sealed JSON; null removes them. */
export async function change(
  tx: Tx,
  input: {
    /** Compare-and-set: unless both still have these values, nothing changes and the result is undefined. */
    expected?: { settings: WebhookSettings; headers: string | null };
    teamId: string;
    id: string;
    settings?: Partial<WebhookSettings>;
    headers?: string | null;
  },
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

/**
 * Pauses it: its deliveries wait, until `deliveries.expire` gives them up. Event, unless it was paused already:
 * `webhook_paused`, to the other webhooks subscribed to the workflow or the team.
 */
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

/**
 * Creates an event `webhook_test` for this webhook alone, whatever it is subscribed to. A paused webhook gets it when
 * it is resumed. Repeating an idempotency key within 24 h returns what the first call made.
 */
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
