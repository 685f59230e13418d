/**
 * Writes what the rules of webhooks have found out, a step at a time.
 *
 * A step counts only if the rule of the webhook has taken no other step since the values were read from which it was
 * computed (`turn`), and no erasure has changed them (`rewrites`). So if two nodes compute the same step, or one repeats
 * it after a crash, the second changes nothing. Rows are locked in the usual order: workflows, webhooks, events, and
 * last the team.
 */

import { Problem } from '../../../model/error.ts';
import type { FilterMistake } from '../../../model/webhook.ts';
import { newId } from '../../../std/id.ts';
import { type ColumnType, forEach, insertAll } from '../../sql.ts';
import type { Tx } from '../../transaction.ts';
import { touchDecisions, touchLane } from '../agenda.ts';
import { appendOwnEvent, DELIVERY_COLUMNS } from '../events.ts';
import { recordKey } from '../record-indexes.ts';
import type { DigestRow, QuietRow, StepBasis } from './decisions.ts';

/** A message to a webhook. Null: the body or the id of the event. */
export interface Message {
  body: string | null;
  messageId: string | null;
}

interface Common extends StepBasis {
  webhookId: string;
  /** The workflow of the event; null if it has none. */
  workflowId: string | null;
  /** The event; for records whose cooldown has ended, the newest event that they cover. */
  sequence: number;
  /** Changes of quiet records. Rows to set replace those of the same records. */
  quiet?: {
    set?: readonly (QuietRow | DigestRow)[];
    remove?: readonly Pick<QuietRow, 'workflowId' | 'id'>[];
  };
  /** If the open digest ends earlier than it was to: its new end. */
  digestUntil?: number;
  /** An error of the rule at run time, which the webhook shows. */
  mistake?: FilterMistake | null;
}

/** One step of one webhook. */
export type DecisionStep = Common & (Progress | Outcome | Ended | DigestEnded);

interface Progress {
  /** A JSON value. */
  progress: unknown;
}

interface Outcome {
  outcome: ({ state: 'sent' } & Message) | { state: 'gathered' } | { state: 'filtered' };
  matched: number | null;
  examined: number | null;
  /** Why nothing is sent, as a sentence. */
  reason: string | null;
}

/** The cooldown of records has ended. A message about them is sent, or nothing. */
interface Ended {
  sent: Message | null;
}

/**
 * A digest has ended. All of its rows become one event of the webhook, which the rule of a revision sends in its form. The
 * event is of the workflow to which the webhook is subscribed; null: all. It is the last step of its webhook in a call.
 */
interface DigestEnded {
  digest: { revision: number; workflowId: string | null; data: Record<string, unknown> };
}

/**
 * Writes steps of webhooks of a team in one transaction. Several steps of one webhook come in their order, each with the
 * next turn. Returns for each step whether it counts. A step does not count if its webhook was removed. Rejects with `database_busy`, and writes nothing, if an erasure has interfered.
 */
export async function step(
  tx: Tx,
  { teamId, steps }: { teamId: string; steps: readonly DecisionStep[] },
): Promise<boolean[]> {
  const basis = await lockAll(tx, teamId, steps);
  const turns = new Map(basis.turns);
  const counts = steps.map((one) => {
    const isNext = turns.get(one.webhookId) === one.turn && basis.rewritesOf(one) === one.rewrites;
    if (isNext) turns.set(one.webhookId, one.turn + 1);
    return isNext;
  });
  const counted = steps.filter((_, place) => counts[place]);
  if (counted.length === 0) return counts;
  await decide(tx, teamId, counted, basis.events);
  await Promise.all([setQuiet(tx, teamId, counted), takeTurns(tx, teamId, counted)]);
  for (const one of counted) {
    if (one.digestUntil !== undefined) await endDigest(tx, { ...one, teamId, until: one.digestUntil });
    if ('digest' in one) await sendDigest(tx, teamId, one);
  }
  await refuseErased(tx, teamId, basis.rewrites);
  return counts;
}

interface Basis {
  /** By webhook; removed webhooks have none. */
  turns: ReadonlyMap<string, number>;
  rewrites: number;
  rewritesOf(one: Common): number;
  /** The sequences of the events that still exist. */
  events: ReadonlySet<number>;
}

/** Locks what the steps are about. The statements are sent together, and lock in this order. */
async function lockAll(tx: Tx, teamId: string, steps: readonly DecisionStep[]): Promise<Basis> {
  const { db } = tx;
  const workflowIds = [...new Set(steps.flatMap(({ workflowId }) => workflowId ?? []))];
  const webhookIds = [...new Set(steps.map(({ webhookId }) => webhookId))];
  const sequences = [...new Set(steps.map(({ sequence }) => sequence))];
  const [workflows, webhooks, events, team] = await Promise.all([
    // An erasure of records locks the workflow for update.
    db.all<{ id: string; erasures: number }>`
      select id, erasures from workflow where team_id = ${teamId} and id = any(${workflowIds}::text[])
      order by id for key share`,
    db.all<{ id: string; turn: number }>`
      select id, rule_turn as turn from webhook
      where team_id = ${teamId} and id = any(${webhookIds}::text[]) and (state || '') <> 'deleted'
      order by id for no key update`,
    db.all<{ sequence: number }>`
      select sequence from event where team_id = ${teamId} and sequence = any(${sequences}::bigint[])
      order by sequence for key share`,
    db.get<{ rewrites: number }>`select rewrites from team where id = ${teamId}`,
  ]);
  const erasures = new Map(workflows.map((one) => [one.id, one.erasures]));
  const rewrites = team?.rewrites ?? 0;
  return {
    turns: new Map(webhooks.map(({ id, turn }) => [id, turn])),
    rewrites,
    rewritesOf: ({ workflowId }) => rewrites + (erasures.get(workflowId ?? '') ?? 0),
    events: new Set(events.map(({ sequence }) => sequence)),
  };
}

// The id of the delivery of a test event is set in advance.
const DECIDE = {
  sqlite: `
    update decision set state = $4, progress = $5, matched = $6, examined = $7, reason = $8,
      delivery_id = coalesce(delivery_id, $9)
    where team_id = $1 and event_sequence = $2 and webhook_id = $3 and state = 'pending'
    returning webhook_id as "webhookId", event_sequence as sequence, delivery_id as "deliveryId"`,
  postgres: `
    update decision set state = given.state, progress = given.progress, matched = given.matched,
      examined = given.examined, reason = given.reason, delivery_id = coalesce(decision.delivery_id, given.delivery_id)
    from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[], $8::text[], $9::text[])
      as given (event_sequence, webhook_id, state, progress, matched, examined, reason, delivery_id)
    where decision.team_id = $1 and decision.event_sequence = given.event_sequence
      and decision.webhook_id = given.webhook_id and decision.state = 'pending'
    returning decision.webhook_id as "webhookId", decision.event_sequence as sequence,
              decision.delivery_id as "deliveryId"`,
};

const MESSAGE_COLUMNS = {
  ...DELIVERY_COLUMNS,
  class: 'integer',
  body: 'text',
  message_id: 'text',
} satisfies Record<string, ColumnType>;
/**
 * Deliveries of decisions are written after later events, and messages about ended cooldowns belong to earlier events. So
 * they are in the class of retries, which is searched from the start (see `LaneBounds` in `postgres/outbox.ts`).
 */
const CLASS = 1;

/** Writes the decisions of steps, and the deliveries of what is sent. */
async function decide(
  tx: Tx,
  teamId: string,
  steps: readonly DecisionStep[],
  events: ReadonlySet<number>,
): Promise<void> {
  const made = steps.map((one) => {
    const sent = events.has(one.sequence) ? messageOf(one) : null;
    return { one, sent, id: sent === null ? null : newId('dlv', tx.now) };
  });
  // If there are several steps of one decision, the last one says all.
  const rows = new Map<string, (string | number | null)[]>();
  for (const { one, id } of made) {
    const key = keyOf(one);
    const of = [one.sequence, one.webhookId];
    if ('progress' in one) {
      rows.set(key, [...of, 'pending', JSON.stringify(one.progress), null, null, null, null]);
    } else if ('outcome' in one) {
      rows.set(key, [...of, one.outcome.state, null, one.matched, one.examined, one.reason, id]);
    }
  }
  const decided = await forEach<Decided>(tx.db, DECIDE, [teamId], [...rows.values()]);
  const ids = new Map(decided.map((one) => [keyOf(one), one.deliveryId]));
  const deliveries = made.flatMap(({ one, sent, id: ownId }) => {
    const { webhookId, sequence } = one;
    const id = 'outcome' in one ? ids.get(keyOf(one)) : ownId;
    if (sent === null || id == null) return [];
    touchLane(tx, teamId, webhookId);
    const origin = id === ownId ? 'event' : 'test';
    const { body, messageId } = sent;
    return [
      [teamId, id, webhookId, sequence, 'waiting', tx.now, tx.now, origin, CLASS, body, messageId] as const,
    ];
  });
  await insertAll(tx.db, 'delivery', MESSAGE_COLUMNS, deliveries);
}

/** A decision that was written, with the id of its delivery. */
interface Decided {
  webhookId: string;
  sequence: number;
  deliveryId: string | null;
}

function keyOf({ webhookId, sequence }: { webhookId: string; sequence: number }): string {
  return `${webhookId} ${sequence}`;
}

function messageOf(one: DecisionStep): Message | null {
  if ('progress' in one || 'digest' in one) return null;
  if (!('outcome' in one)) return one.sent;
  return one.outcome.state === 'sent' ? one.outcome : null;
}

const QUIET_COLUMNS = {
  team_id: 'text',
  webhook_id: 'text',
  workflow_id: 'text',
  record_key: 'text',
  record_id: 'text',
  until: 'bigint',
  sent: 'text',
  newest: 'text',
  event_sequence: 'bigint',
  revision: 'integer',
  matches: 'integer',
} satisfies Record<string, ColumnType>;
const REPLACE = `
  on conflict (team_id, webhook_id, workflow_id, record_key) do update set
    until = excluded.until, sent = excluded.sent, newest = excluded.newest,
    event_sequence = excluded.event_sequence, revision = excluded.revision, matches = excluded.matches`;
const REMOVE = {
  sqlite: `
    delete from quiet_record
    where team_id = $1 and webhook_id = $2 and workflow_id = $3 and record_key = $4 returning record_key`,
  postgres: `
    delete from quiet_record
    using unnest($2::text[], $3::text[], $4::text[]) as given (webhook_id, workflow_id, record_key)
    where quiet_record.team_id = $1 and quiet_record.webhook_id = given.webhook_id
      and quiet_record.workflow_id = given.workflow_id and quiet_record.record_key = given.record_key
    returning quiet_record.record_key`,
};

async function setQuiet(tx: Tx, teamId: string, steps: readonly DecisionStep[]): Promise<void> {
  const set = new Map<string, (string | number | null)[]>();
  const removed = new Map<string, string[]>();
  // Of several steps of one webhook, the last one counts for a record.
  for (const { webhookId, quiet } of steps) {
    for (const { workflowId, id } of quiet?.remove ?? []) {
      const key = [webhookId, workflowId, recordKey(id)];
      set.delete(key.join(' '));
      removed.set(key.join(' '), key);
    }
    for (const row of quiet?.set ?? []) {
      const key = [webhookId, row.workflowId, 'key' in row ? row.key : recordKey(row.id)];
      removed.delete(key.join(' '));
      const { id, until, sent, newest, sequence, revision, matches } = row;
      set.set(key.join(' '), [teamId, ...key, id, until, sent, newest, sequence, revision, matches]);
    }
  }
  const until = steps
    .flatMap(({ quiet }) => quiet?.set ?? [])
    .reduce((first, row) => Math.min(first, row.until), Number.POSITIVE_INFINITY);
  if (set.size > 0) touchDecisions(tx, teamId, until);
  await Promise.all([
    forEach(tx.db, REMOVE, [teamId], [...removed.values()]),
    insertAll(tx.db, 'quiet_record', QUIET_COLUMNS, [...set.values()], REPLACE),
  ]);
}

/** Ends the open digest of a webhook at a time, unless it ends earlier. */
export async function endDigest(
  tx: Tx,
  { teamId, webhookId, until }: { teamId: string; webhookId: string; until: number },
): Promise<void> {
  const rows = await tx.db.run`
    update quiet_record set until = ${until}
    where team_id = ${teamId} and webhook_id = ${webhookId} and matches is not null and until > ${until}`;
  if (rows > 0) touchDecisions(tx, teamId, until);
}

async function sendDigest(tx: Tx, teamId: string, one: Common & DigestEnded): Promise<void> {
  const { webhookId, digest } = one;
  const { revision, workflowId, data } = digest;
  await tx.db.run`
    delete from quiet_record
    where team_id = ${teamId} and webhook_id = ${webhookId} and matches is not null`;
  const event = { teamId, type: 'webhook_digest', workflowId, jobId: null, finishedAt: null, data } as const;
  appendOwnEvent(tx, event, { webhookId, revision });
}

const TAKE_TURN = {
  sqlite: `
    update webhook set rule_turn = $3, rule_mistake = coalesce($4, rule_mistake)
    where team_id = $1 and id = $2 returning id`,
  postgres: `
    update webhook set rule_turn = given.turn, rule_mistake = coalesce(given.mistake, webhook.rule_mistake)
    from unnest($2::text[], $3::bigint[], $4::text[]) as given (id, turn, mistake)
    where webhook.team_id = $1 and webhook.id = given.id returning webhook.id`,
};

async function takeTurns(tx: Tx, teamId: string, steps: readonly DecisionStep[]): Promise<void> {
  const rows = [...Map.groupBy(steps, ({ webhookId }) => webhookId)].map(([webhookId, ofOne]) => {
    const mistake = ofOne.findLast((one) => one.mistake != null)?.mistake ?? null;
    const turn = Math.max(...ofOne.map((one) => one.turn)) + 1;
    return [webhookId, turn, mistake === null ? null : JSON.stringify(mistake)];
  });
  await forEach(tx.db, TAKE_TURN, [teamId], rows);
}

/**
 * Locks the team, and rejects if an erasure has rewritten texts since `lockAll`. What the steps contain may have been
 * erased. The team is locked last, as everywhere.
 */
async function refuseErased(tx: Tx, teamId: string, rewrites: number): Promise<void> {
  const team = await tx.db.get<{ rewrites: number }>`
    select rewrites from team where id = ${teamId} for no key update`;
  if (team?.rewrites !== rewrites) throw new Problem('database_busy');
}
