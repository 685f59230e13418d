/** Changing webhooks: what people wrote about them, their settings, rules, subscriptions and destinations. */

import { Problem } from '../../../model/error.ts';
import { isMailUrl } from '../../../model/messages/mail-address.ts';
import { isSameDigest, type Rule, storedRule } from '../../../model/rule.ts';
import {
  eventSetKey,
  firesFor,
  UNVERIFIED,
  type Webhook,
  type WebhookSettings,
  WITHDRAWN,
} from '../../../model/webhook.ts';
import { newId } from '../../../std/id.ts';
import type { Tx } from '../../transaction.ts';
import { endDigest } from '../rules/steps.ts';
import {
  addRevision,
  changed,
  effective,
  get,
  holdTarget,
  isVerified,
  rotate,
  SAME,
  textOfRule,
  WEBHOOK,
  type WebhookRow,
} from '../webhooks.ts';

/** A webhook after a change. `was`: its URL, events and rule before, if the URL or the events have changed. */
export type ChangedWebhook = Webhook & { was?: Pick<Webhook, 'url' | 'events' | 'rule'> };

/**
 * Changes a webhook. Values that are not given stay unchanged. `headers` is encrypted JSON; null removes the headers, the
 * name, the description or the rule. A new rule and new events apply to later events only. A rule equal to the stored one
 * changes nothing. `secret` (encrypted) replaces the secret immediately.
 *
 * A new `url` is a new destination: nothing is known about its health. Waiting deliveries go there. If it is a mail
 * address, the webhook waits until the address is verified, as after `subscribe`.
 *
 * Rejects with `webhook_exists` if another webhook has the same workflow, URL, events and filter.
 */
export async function change(
  tx: Tx,
  input: {
    /**
     * If given, the call is a compare-and-set: if any of the stored values differs from these, nothing changes and the
     * result is undefined.
     */
    expected?: Partial<ExpectedWebhook>;
    teamId: string;
    id: string;
    url?: string;
    events?: readonly string[];
    secret?: string;
    settings?: Partial<WebhookSettings>;
    headers?: string | null;
    name?: string | null;
    description?: string | null;
    labels?: readonly string[];
    rule?: Rule | null;
  },
): Promise<ChangedWebhook | undefined> {
  const { teamId, id, settings = {}, expected, secret } = input;
  if (input.rule !== undefined || input.url !== undefined || input.events !== undefined) {
    // Simultaneous calls find each other's subscriptions. The workflow or team is locked first, as by `subscribe`.
    const webhook = await get(tx, { teamId, id });
    if (webhook !== undefined) await holdTarget(tx, teamId, webhook.workflowId);
  }
  const row = await tx.db.get<ChangingRow>`
    select ${WEBHOOK}, headers from webhook
    where team_id = ${teamId} and id = ${id} and state <> 'deleted' for no key update`;
  if (row === undefined || (expected !== undefined && !isAsExpected(row, expected))) return undefined;
  const before = { url: row.url, events: JSON.parse(row.events) as string[], rule: ruleOf(row) };
  const { url = row.url, events = before.events } = input;
  // Before the row has the new URL, which may be an address that other webhooks have verified.
  if (url !== row.url) await setDestination(tx, row, url);
  const isSubscribed = url === row.url && JSON.stringify(events) === row.events;
  if (input.rule !== undefined || !isSubscribed) {
    const rule = input.rule === undefined ? before.rule : effective(input.rule);
    await setSubscription(tx, row, { url, events, rule });
  }
  if (secret !== undefined) await rotate(tx, { teamId, id, secret, overlapMs: 0 });
  const { headers = row.headers, name = row.name, description = row.description } = input;
  const labels = input.labels === undefined ? row.labels : JSON.stringify(input.labels);
  const written = { ...(JSON.parse(row.settings) as WebhookSettings), ...settings };
  const webhook = changed(
    tx,
    await tx.db.get<WebhookRow>`
      update webhook set settings = ${JSON.stringify(written)}, headers = ${headers}, name = ${name},
        description = ${description}, labels = ${labels}
      where team_id = ${teamId} and id = ${id} returning ${WEBHOOK}`,
  );
  return webhook && (isSubscribed ? webhook : { ...webhook, was: before });
}

type ChangingRow = WebhookRow & { headers: string | null };

/** What `If-Match` compares, and what must not have changed since it was read. */
export interface ExpectedWebhook
  extends Pick<Webhook, 'url' | 'events' | 'settings' | 'name' | 'description' | 'labels' | 'rule'> {
  /** Encrypted JSON. */
  headers: string | null;
}

function isAsExpected(row: ChangingRow, expected: Partial<ExpectedWebhook>): boolean {
  const { headers = row.headers, name = row.name, description = row.description, url = row.url } = expected;
  const { rule, settings, events, labels } = expected;
  const isSame = (stored: string, value: unknown) =>
    value === undefined || JSON.stringify(JSON.parse(stored)) === JSON.stringify(value);
  return (
    isSame(row.settings, settings) &&
    isSame(row.events, events) &&
    isSame(row.labels, labels) &&
    row.headers === headers &&
    row.name === name &&
    row.description === description &&
    row.url === url &&
    row.rule === (rule === undefined ? row.rule : textOfRule(effective(rule)))
  );
}

function ruleOf({ rule }: WebhookRow): Rule | null {
  return rule === null ? null : storedRule(rule);
}

/** Brings a URL, events and a rule into force. A rule gets a new revision, unless it is the stored one. */
async function setSubscription(
  tx: Tx,
  row: WebhookRow,
  { url, events, rule }: { url: string; events: readonly string[]; rule: Rule | null },
): Promise<void> {
  const { teamId, id, workflowId } = row;
  const key = eventSetKey(events, rule);
  const same = await tx.db.get<WebhookRow>(SAME, teamId, workflowId ?? '', url, key);
  if (same !== undefined && same.id !== id)
    throw new Problem('webhook_exists', { sentence: collision(same.id) });
  await tx.db.run`
    update webhook set url = ${url}, events = ${JSON.stringify(events)}, event_set = ${key},
      fires_for = ${firesFor(events)}
    where team_id = ${teamId} and id = ${id}`;
  if (textOfRule(rule) !== row.rule) await setRule(tx, row, rule);
}

async function setRule(tx: Tx, row: WebhookRow, rule: Rule | null): Promise<void> {
  const { teamId, id } = row;
  const text = textOfRule(rule);
  const revision = text === null ? null : await addRevision(tx, { teamId, id, text });
  const digest = ruleOf(row)?.digest ?? null;
  if (digest !== null && !isSameDigest(digest, rule?.digest ?? null)) {
    // What was gathered is sent now. Steps that were computed from its old end no longer count.
    await endDigest(tx, { teamId, webhookId: id, until: tx.now });
    await tx.db.run`update webhook set rule_turn = rule_turn + 1 where team_id = ${teamId} and id = ${id}`;
  }
  await tx.db.run`
    update webhook set rule = ${text}, rule_revision = ${revision}, rule_mistake = null
    where team_id = ${teamId} and id = ${id}`;
}

const collision = (id: string) =>
  `The webhook ${id} already has the same workflow, URL, events and filter. Change or unsubscribe that webhook instead`;

/** Forgets what was known about the old destination, and pauses the webhook if the new one must be verified first. */
async function setDestination(tx: Tx, row: WebhookRow, url: string): Promise<void> {
  const { teamId, id } = row;
  if (isMailUrl(row.url)) await keepMailsOfAddress(tx, row);
  const isReady = !isMailUrl(url) || (await isVerified(tx, { teamId, url }));
  const waitsForAddress = row.pausedReason === UNVERIFIED || row.pausedReason === WITHDRAWN;
  // A pause for another reason stays, such as that of a person.
  const [state, pausedAt, reason] =
    row.state === 'paused' && !waitsForAddress
      ? [row.state, row.pausedAt, row.pausedReason]
      : isReady
        ? ['active', null, null]
        : ['paused', tx.now, UNVERIFIED];
  await tx.db.run`
    update webhook set state = ${state}, paused_at = ${pausedAt}, paused_reason = ${reason},
      verified_at = ${isMailUrl(url) && isReady ? tx.now : null}, verification_mails = null,
      failing_since = null, breaker = null, last_success_at = null
    where team_id = ${teamId} and id = ${id}`;
}

/**
 * Keeps for the old address how many verification mails it got, and that its owner has unsubscribed, as if the webhook had
 * been removed. Otherwise changing an address back and forth would send its owner any number of mails.
 */
async function keepMailsOfAddress(tx: Tx, { teamId, id }: WebhookRow): Promise<void> {
  await tx.db.run`
    insert into webhook
      (team_id, id, workflow_id, url, events, event_set, fires_for, state, secret, settings, created_at, deleted_at,
       paused_reason, verification_mails)
    select team_id, ${newId('wh', tx.now)}::text, workflow_id, url, events, event_set, fires_for, 'deleted', '', settings,
      created_at, ${tx.now}::bigint, paused_reason, verification_mails
    from webhook
    where team_id = ${teamId} and id = ${id} and (verification_mails is not null or paused_reason = ${WITHDRAWN})`;
}
