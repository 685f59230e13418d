/** Webhooks: subscribing, reading, pausing, testing, removing and pruning; `webhooks/change.ts` changes them. */

import { Problem } from '../../model/error.ts';
import { pausedData, testData } from '../../model/event.ts';
import { toldUrl } from '../../model/messages/destination.ts';
import { isMailUrl } from '../../model/messages/mail-address.ts';
import { hasRule, type Rule, storedRule } from '../../model/rule.ts';
import {
  DEFAULT_WEBHOOK_SETTINGS,
  eventSetKey,
  firesFor,
  UNVERIFIED,
  type Webhook,
  type WebhookSettings,
  WITHDRAWN,
} from '../../model/webhook.ts';
import { newId } from '../../std/id.ts';
import type { Page } from '../page.ts';
import type { InTeam } from '../rows.ts';
import { both, Part } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { touchLane } from './agenda.ts';
import { appendEvent, appendTestEvent } from './events.ts';
import { type IdempotencyKey, once } from './idempotency.ts';
import { requireRoom } from './quotas.ts';
import { DECISION_STATES } from './rules/decisions.ts';

/** Columns for `toWebhook`. */
export const WEBHOOK = new Part(`
  team_id as "teamId", id, workflow_id as "workflowId", url, events, name, description, labels, rule,
  rule_revision as "ruleRevision", rule_mistake as "ruleMistake", state, settings, paused_at as "pausedAt", paused_reason as "pausedReason",
  failing_since as "failingSince", breaker, last_success_at as "lastSuccessAt", verified_at as "verifiedAt",
  created_at as "createdAt"`);

/**
 * Condition: the webhook is not deleted. No index has this expression, so that PostgreSQL finds a webhook by its primary
 * key, and not by an index of webhooks that are not deleted.
 */
const EXISTS = new Part(`(state || '') <> 'deleted'`);

/** The row of a webhook. The fields declared here are JSON texts instead of objects. */
export interface WebhookRow
  extends Omit<Webhook, 'events' | 'labels' | 'rule' | 'ruleMistake' | 'settings' | 'breaker'> {
  events: string;
  labels: string;
  rule: string | null;
  ruleMistake: string | null;
  settings: string;
  breaker: string | null;
}

function toWebhook({ events, labels, rule, ruleMistake, settings, breaker, ...row }: WebhookRow): Webhook {
  return {
    ...row,
    events: JSON.parse(events),
    labels: JSON.parse(labels),
    rule: rule === null ? null : storedRule(rule),
    ruleMistake: parsed(ruleMistake),
    settings: JSON.parse(settings),
    breaker: parsed(breaker),
  };
}

function parsed<Value>(text: string | null): Value | null {
  return text === null ? null : JSON.parse(text);
}

/** Returns the changed webhook, and makes the node that sends to it reload its settings. */
export function changed(tx: Tx, row: WebhookRow | undefined): Webhook | undefined {
  if (row === undefined) return undefined;
  touchLane(tx, row.teamId, row.id);
  return toWebhook(row);
}

/**
 * Subscribes a URL to events of a workflow or, with a null `workflowId`, of the whole team. If a subscription with the
 * same team, workflow, URL, set of events and filter exists, that subscription is returned, and resumed if it was paused.
 * Without a rule, only subscriptions without a rule are the same. `secret` (encrypted) is used only for a new
 * subscription, and so are `name`, `description`, `labels`, and the rule except its filter.
 *
 * A webhook that sends mail is paused until its address is verified (`mail/addresses.ts`), unless it is already.
 *
 * Locks the workflow or team, so that simultaneous calls find each other's subscriptions and do not exceed the limit.
 */
export async function subscribe(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    secret: string;
    /** Maximum number of active webhooks per workflow. */
    limit: number;
    /** Used only for a new subscription (default: `DEFAULT_WEBHOOK_SETTINGS`). */
    settings?: WebhookSettings;
    name?: string | null;
    description?: string | null;
    labels?: readonly string[];
    rule?: Rule | null;
  },
): Promise<
  | { outcome: 'created' | 'existing'; webhook: Webhook; resumed?: true }
  | { outcome: 'workflow_not_found' }
  | { outcome: 'limit_reached' }
> {
  const { teamId, workflowId, url, events, limit, settings = DEFAULT_WEBHOOK_SETTINGS } = input;
  const { name = null, description = null, labels = [] } = input;
  const rule = effective(input.rule);
  if (!(await holdTarget(tx, teamId, workflowId))) return { outcome: 'workflow_not_found' };

  const [same, active] = await Promise.all([
    tx.db.get<WebhookRow>(SAME, teamId, workflowId ?? '', url, eventSetKey(events, rule)),
    activeCount(tx, teamId, workflowId),
  ]);
  const isUnverified = same !== undefined && isMailUrl(url) && same.verifiedAt === null;
  if (same?.state === 'active' || isUnverified) return { outcome: 'existing', webhook: toWebhook(same) };
  if (active >= limit) return { outcome: 'limit_reached' };
  if (same !== undefined) {
    const webhook = (await resume(tx, { teamId, id: same.id })) as Webhook;
    return { outcome: 'existing', webhook, resumed: true };
  }

  await requireRoom(tx, teamId, 'webhooks');
  const id = newId('wh', tx.now);
  const text = textOfRule(rule);
  const revision = text === null ? null : await addRevision(tx, { teamId, id, text });
  const isVerifiedMail = isMailUrl(url) && (await isVerified(tx, { teamId, url }));
  const isPaused = isMailUrl(url) && !isVerifiedMail;
  const row = (await tx.db.get<WebhookRow>`
    insert into webhook
      (team_id, id, workflow_id, url, events, event_set, fires_for, state, secret, settings, created_at,
       name, description, labels, rule, rule_revision, paused_at, paused_reason, verified_at)
    values (${teamId}, ${id}, ${workflowId}, ${url}, ${JSON.stringify(events)},
      ${eventSetKey(events, rule)}, ${firesFor(events)}, ${isPaused ? 'paused' : 'active'}, ${input.secret},
      ${JSON.stringify(settings)}, ${tx.now}, ${name}, ${description},
      ${JSON.stringify(labels)}, ${text}, ${revision},
      ${isPaused ? tx.now : null}, ${isPaused ? UNVERIFIED : null}, ${isVerifiedMail ? tx.now : null})
    returning ${WEBHOOK}`) as WebhookRow;
  return { outcome: 'created', webhook: toWebhook(row) };
}

/**
 * Whether a new webhook of the team may send to this `mailto:` URL immediately: another webhook has verified it, and the
 * recipient has not unsubscribed from any since, also from one that was removed.
 */
export async function isVerified(
  view: View,
  { teamId, url }: { teamId: string; url: string },
): Promise<boolean> {
  const row = await view.db.get<{ verified: number | null; withdrawn: number | null }>`
    select max(case when state <> 'deleted' then verified_at end) as verified,
      max(case when paused_reason = ${WITHDRAWN} then 1 end) as withdrawn
    from webhook /* use webhook_mail */
    where team_id = ${teamId} and url = ${url} and substr(url, 1, 7) = 'mailto:'`;
  return row !== undefined && row.verified !== null && row.withdrawn === null;
}

/** Returns the rule, or null if it is the same as having none. */
export function effective(rule: Rule | null | undefined): Rule | null {
  return rule != null && hasRule(rule) ? rule : null;
}

/**
 * Returns the same text for rules that decide and write the same. The order of a template's keys counts. Fields that
 * earlier versions do not have are left out while they are null, so that the text of an unchanged rule stays the same.
 */
export function textOfRule(rule: Rule | null): string | null {
  if (rule === null) return null;
  const { filter, format, template, firstVersion, cooldownMs, digest, timeZone } = rule;
  return JSON.stringify({
    filter,
    format,
    template,
    firstVersion,
    cooldownMs,
    ...(digest === null ? {} : { digest }),
    ...(timeZone === null ? {} : { timeZone }),
  });
}

/** Stores a rule that comes into force, and returns its revision. */
export async function addRevision(tx: Tx, { teamId, id, text }: InTeam & { text: string }): Promise<number> {
  const row = (await tx.db.get<{ revision: number }>`
    insert into webhook_rule (team_id, webhook_id, revision, rule, created_at)
    select ${teamId}, ${id}, coalesce(max(revision), 0) + 1, ${text}, ${tx.now} from webhook_rule
    where team_id = ${teamId} and webhook_id = ${id}
    returning revision`) as { revision: number };
  return row.revision;
}

/** Locks the workflow or team to which a webhook is being subscribed until the commit. Returns whether it exists. */
export async function holdTarget(tx: Tx, teamId: string, workflowId: string | null): Promise<boolean> {
  const found =
    workflowId === null
      ? await tx.db.get`select 1 from team where id = ${teamId} for no key update`
      : await tx.db.get`
        select 1 from workflow where team_id = ${teamId} and id = ${workflowId}
          and archived_at is null for no key update`;
  return found !== undefined;
}

// The statement names the index for SQLite, which would otherwise read all webhooks of the team, deleted ones included.
// On PostgreSQL the index contains digests of the URL and of the set of events.
export const SAME = both(
  (pick) => `
  select ${WEBHOOK} from webhook /* use webhook_same */
  where team_id = $1 and coalesce(workflow_id, '') = $2 and state <> 'deleted' and url = $3 and event_set = $4
    ${pick({ sqlite: '', postgres: 'and md5(url) = md5($3) and md5(event_set) = md5($4)' })}`,
);

async function activeCount(tx: Tx, teamId: string, workflowId: string | null): Promise<number> {
  const row = await tx.db.get<{ count: number }>`
    select count(*) as count from webhook
    where team_id = ${teamId} and coalesce(workflow_id, '') = ${workflowId ?? ''}
      and state <> 'deleted' and state = 'active'`;
  return row?.count ?? 0;
}

/**
 * Ends the pause and clears `failingSince` and `breaker`. Rejects with `address_unverified` if the webhook sends mail to
 * an address that is not verified.
 */
export async function resume(tx: Tx, { teamId, id }: InTeam): Promise<Webhook | undefined> {
  const row = await tx.db.get<WebhookRow>`
    update webhook set state = 'active', paused_at = null, paused_reason = null, failing_since = null,
      breaker = null
    where team_id = ${teamId} and id = ${id} and state = 'paused'
      and (verified_at is not null or substr(url, 1, 7) <> 'mailto:') returning ${WEBHOOK}`;
  if (row !== undefined) return changed(tx, row);
  tx.repeated = true;
  const webhook = await get(tx, { teamId, id });
  if (webhook?.state === 'paused') throw new Problem('address_unverified');
  return webhook;
}

// The statements sort only the ids of matching rows, and look up only the rows on the page.
const LISTED = `
  select ${WEBHOOK} from webhook /* use webhook_listed */
  where team_id = $1 and id > $2 and state <> 'deleted' order by id limit $3`;
const matching = (filter: string) => `
  select ${WEBHOOK} from webhook where team_id = $1 and id in (
    select id from webhook /* use webhook_same */
    where team_id = $1 and state <> 'deleted' and ${filter} and id > $2 order by id limit $3)
  order by id`;

/**
 * Returns a page of a team's webhooks, ordered by id: all webhooks, those of one workflow, or those with exactly this
 * URL.
 */
export async function list(
  view: View,
  {
    teamId,
    workflowId,
    url,
    after = '',
    limit,
  }: { teamId: string; workflowId?: string; url?: string } & Page,
): Promise<Webhook[]> {
  const values: (string | number)[] = [teamId, after, limit];
  const filters: string[] = [];
  if (workflowId !== undefined) filters.push(`coalesce(workflow_id, '') = $${values.push(workflowId)}`);
  if (url !== undefined) filters.push(`url = $${values.push(url)}`);
  const page = filters.length === 0 ? LISTED : matching(filters.join(' and '));
  const rows = await view.db.all<WebhookRow>(page, ...values);
  return rows.map(toWebhook);
}

export async function get(view: View, { teamId, id }: InTeam): Promise<Webhook | undefined> {
  const row = await view.db.get<WebhookRow>`
    select ${WEBHOOK} from webhook where team_id = ${teamId} and id = ${id} and ${EXISTS}`;
  return row && toWebhook(row);
}

/**
 * Removes webhooks. `more` means that deliveries or decisions of these webhooks may still be waiting, which
 * `cancelRemoved` must cancel.
 */
export async function unsubscribe(
  tx: Tx,
  { teamId, ids }: { teamId: string; ids: readonly string[] },
): Promise<{ removed: number; more: boolean }> {
  const removed: string[] = [];
  // Webhooks are locked in the order of their ids, so that no two calls deadlock.
  for (const id of [...ids].sort()) if (await markRemoved(tx, { teamId, id })) removed.push(id);
  const targets = removed.map((id) => ({ teamId, id }));
  return { removed: removed.length, more: await cancelWaiting(tx, targets) };
}

/** Marks a webhook as deleted, so that nodes load no more of its deliveries. Returns whether the webhook existed. */
export async function markRemoved(tx: Tx, { teamId, id }: InTeam): Promise<boolean> {
  const removed = await tx.db.run`
    update webhook set state = 'deleted', deleted_at = ${tx.now}
    where team_id = ${teamId} and id = ${id} and state <> 'deleted'`;
  // Nodes that have already loaded deliveries of the webhook discard them.
  if (removed > 0) touchLane(tx, teamId, id);
  return removed > 0;
}

/** Maximum number of deliveries, decisions and quiet records that one transaction cancels. */
export const MAX_CANCELED = 500;

/**
 * Cancels up to 500 deliveries that are waiting for these webhooks, pending decisions and quiet records. Returns whether
 * there may be more of them.
 */
export async function cancelWaiting(tx: Tx, webhooks: readonly InTeam[]): Promise<boolean> {
  const room = tx.cancels ?? { left: MAX_CANCELED };
  for (const { teamId, id } of webhooks) {
    if (room.left <= 0) return true;
    room.left -= await tx.db.run`
      with waiting as materialized (
        select id from delivery /* use delivery_order */
        where team_id = ${teamId} and webhook_id = ${id} and state = 'waiting' and event_sequence > 0
        order by class, event_sequence, id limit ${room.left}
      )
      update delivery set state = 'canceled', next_at = null
      from waiting where delivery.team_id = ${teamId} and delivery.id = waiting.id and delivery.state = 'waiting'`;
    for (const statement of ENDED_WITH_WEBHOOK) {
      if (room.left > 0) room.left -= await tx.db.run(statement, teamId, id, room.left);
    }
    if (room.left <= 0) return true;
  }
  return false;
}

/** The rest of what waits for a webhook. A webhook that has ended needs no decisions. */
const ENDED_WITH_WEBHOOK = [
  `delete from decision where team_id = $1 and webhook_id = $2 and state = 'pending' and event_sequence in (
     select event_sequence from decision /* use decision_state */
     where team_id = $1 and state = 'pending' and webhook_id = $2 order by event_sequence limit $3)`,
  `delete from quiet_record where team_id = $1 and webhook_id = $2 and (workflow_id, record_key) in (
     select workflow_id, record_key from quiet_record
     where team_id = $1 and webhook_id = $2 order by workflow_id, record_key limit $3)`,
];

/** Maximum number of webhooks per call. */
const MAX_REMOVED = 20;

/**
 * Cancels deliveries of a team that are waiting for removed webhooks, and ends their decisions and quiet records, a
 * limited number per call, including those written while their webhook was being removed. Call until `done`.
 */
export async function cancelRemoved(tx: Tx, { teamId }: { teamId: string }): Promise<{ done: boolean }> {
  const removed = await tx.db.all<InTeam>`
    select team_id as "teamId", id from webhook /* use webhook_removed */
    where team_id = ${teamId} and state = 'deleted'
      and coalesce(
        (select true from delivery d /* use delivery_order */
         where d.team_id = ${teamId} and d.webhook_id = webhook.id and d.state = 'waiting' and d.event_sequence > 0
         order by d.class, d.event_sequence, d.id limit 1),
        (select true from decision d /* use decision_state */
         where d.team_id = ${teamId} and d.state = 'pending' and d.webhook_id = webhook.id
         order by d.event_sequence limit 1),
        (select true from quiet_record q
         where q.team_id = ${teamId} and q.webhook_id = webhook.id order by q.workflow_id, q.record_key limit 1))
    order by deleted_at, id limit ${MAX_REMOVED}`;
  await cancelWaiting(tx, removed);
  return { done: removed.length === 0 };
}

/**
 * Returns the encrypted secret of a webhook, and the webhook's own headers as encrypted JSON; null if it has no
 * headers.
 */
export function sealed(
  view: View,
  { teamId, id }: InTeam,
): Promise<{ secret: string; headers: string | null } | undefined> {
  return view.db.get<{ secret: string; headers: string | null }>`
    select secret, headers from webhook where team_id = ${teamId} and id = ${id} and state <> 'deleted'`;
}

/** A removed webhook. Webhooks are visited in the order in which they were removed. */
interface PrunePlace {
  deletedAt: number;
  id: string;
}

/**
 * Deletes the rows (and secrets) of a team's webhooks that were removed more than `olderMs` ago and have no deliveries
 * and decisions left. Visits up to `limit` webhooks per call; call with `after: next` until `done`. `at` is when the next one may be
 * deleted.
 */
export async function prune(
  tx: Tx,
  {
    teamId,
    olderMs,
    limit,
    after = { deletedAt: -1, id: '' },
  }: { teamId: string; olderMs: number; limit: number; after?: PrunePlace | undefined },
): Promise<{ done: boolean; next?: PrunePlace; pruned: number; at: number | null }> {
  const removed = await tx.db.all<PrunePlace>`
    select deleted_at as "deletedAt", id from webhook /* use webhook_removed */
    where team_id = ${teamId} and state = 'deleted' and (deleted_at, id) > (${after.deletedAt}, ${after.id})
    order by deleted_at, id limit ${limit}`;
  const old = removed.filter(({ deletedAt }) => deletedAt < tx.now - olderMs);
  // The subquery repeats the values instead of referring to the outer row. Otherwise PostgreSQL would join the tables,
  // and read all rows of the webhook.
  const gone = await Promise.all(
    old.map(
      ({ id }) => tx.db.run`
        delete from webhook where team_id = ${teamId} and id = ${id} and state = 'deleted'
          and not exists (select 1 from delivery /* use delivery_history */
                          where delivery.team_id = ${teamId} and delivery.webhook_id = ${id})
          and not exists (select 1 from unnest(${DECISION_STATES}::text[]) as any_of (state)
                          cross join decision /* use decision_state */
                          where decision.team_id = ${teamId} and decision.state = any_of.state
                            and decision.webhook_id = ${id})
          and not exists (select 1 from quiet_record
                          where quiet_record.team_id = ${teamId} and quiet_record.webhook_id = ${id})`,
    ),
  );
  const pruned = old.filter((_, at) => gone[at] === 1);
  // Only PostgreSQL has leases.
  const pruneLane = tx.db.pick({
    sqlite: async () => 0,
    postgres: ({ id }: PrunePlace) =>
      tx.db.run`delete from lane where team_id = ${teamId} and webhook_id = ${id}`,
  });
  await Promise.all(pruned.map(pruneLane));
  const prunedIds = pruned.map(({ id }) => id);
  if (prunedIds.length > 0) {
    await tx.db
      .run`delete from webhook_rule where team_id = ${teamId} and webhook_id = any(${prunedIds}::text[])`;
  }
  const young = removed[old.length];
  const next = old.at(-1);
  return {
    ...(old.length < limit || next === undefined ? { done: true } : { done: false, next }),
    pruned: pruned.length,
    at: young === undefined ? null : young.deletedAt + olderMs + 1,
  };
}

/**
 * Replaces the secret. Deliveries are also signed with the previous secret for `overlapMs`; 0 ends the previous secret
 * immediately. If the secret is replaced again within an overlap, the oldest secret stays valid, because receivers may
 * not know the second one yet.
 */
export async function rotate(
  tx: Tx,
  { teamId, id, secret, overlapMs }: InTeam & { secret: string; overlapMs: number },
): Promise<Webhook | undefined> {
  const until = tx.now + overlapMs;
  const row = await tx.db.get<WebhookRow>`
    update webhook set
      previous_secret = case
        when ${overlapMs === 0} then null
        when previous_secret is not null and previous_until > ${tx.now} then previous_secret
        else secret end,
      previous_until = case when previous_until > ${tx.now} then greatest(previous_until, ${until}) else ${until} end,
      secret = ${secret}
    where team_id = ${teamId} and id = ${id} and state <> 'deleted' returning ${WEBHOOK}`;
  return changed(tx, row);
}

/**
 * Pauses a webhook. Its deliveries wait until the webhook is resumed or the deliveries expire (`deliveries.expire`).
 * Event, unless the webhook was already paused: `webhook_paused`, to the other webhooks subscribed to the workflow or
 * the team.
 */
export async function pause(
  tx: Tx,
  { teamId, id, reason }: InTeam & { reason: string },
): Promise<Webhook | undefined> {
  const row = await tx.db.get<WebhookRow>`
    update webhook set state = 'paused', paused_at = ${tx.now}, paused_reason = ${reason}
    where team_id = ${teamId} and id = ${id} and state = 'active' returning ${WEBHOOK}`;
  if (row === undefined) {
    tx.repeated = true;
    return get(tx, { teamId, id });
  }
  const { workflowId, rule } = row;
  const url = toldUrl(row.url, rule === null ? null : storedRule(rule));
  const data = pausedData({ id, url, pausedAt: tx.now, reason });
  appendEvent(
    tx,
    { teamId, type: 'webhook_paused', workflowId, jobId: null, finishedAt: null, data },
    { exceptWebhookId: id },
  );
  return changed(tx, row);
}

/**
 * Creates an event `webhook_test` for this webhook only, even if the webhook is not subscribed to it. A paused webhook
 * receives the event when it is resumed. Repeating an idempotency key within 24 h returns the event and delivery that
 * the first call created.
 */
export async function test(
  tx: Tx,
  { teamId, id, idempotencyKey = null }: InTeam & { idempotencyKey?: IdempotencyKey },
): Promise<{ eventId: string; deliveryId: string } | undefined> {
  const webhook = await get(tx, { teamId, id });
  if (webhook === undefined) return undefined;
  const { workflowId } = webhook;
  const event = { teamId, workflowId, jobId: null, finishedAt: null, data: testData(id) };
  return once(tx, { teamId, operation: 'webhooks.test', target: id, idempotencyKey }, async () =>
    appendTestEvent(tx, { ...event, type: 'webhook_test' }, webhook),
  );
}
