/**
 * Decisions: whether and in which form a webhook with a rule receives an event.
 *
 *     commit with an event ──▶ pending ──step──▶ … ──step──▶ sent, with a delivery
 *                                 │                  ├─────▶ filtered, with a reason
 *                                 │                  └─────▶ gathered, in a digest that is sent later
 *                                 └──webhook removed──▶ deleted
 *
 * A decision takes several steps, because a version may have many differences. What a step has found is in `progress`,
 * in the same transaction, so that a crash repeats and loses nothing (see `steps.ts`). The decisions of a webhook
 * are made in the order of their events.
 *
 * A webhook hears nothing about a quiet record until the record's cooldown, or the digest that gathers it, ends.
 */

import type { Digest } from '../../../model/digest.ts';
import type { EventType } from '../../../model/event.ts';
import { type Rule, storedRule } from '../../../model/rule.ts';
import { earlier } from '../../../std/earlier.ts';
import { both, MAX_BATCH_BYTES, Part } from '../../sql.ts';
import type { Tx, View } from '../../transaction.ts';
import { raise as raiseItem } from '../agenda.ts';
import { recordKey } from '../record-indexes.ts';

export const DECISION_STATES = ['pending', 'sent', 'gathered', 'filtered'] as const;
export type DecisionState = (typeof DECISION_STATES)[number];

/** The event that a decision or a message is about. */
export interface JudgedEvent {
  sequence: number;
  eventId: string;
  type: EventType;
  workflowId: string | null;
  jobId: string | null;
  body: string;
  createdAt: number;
}

/** What must not have changed when a step is written that was computed from these values. */
export interface StepBasis {
  /** How many steps the rule of the webhook has taken. */
  turn: number;
  /** How often erasures have rewritten texts of the team, or removed records of the event's workflow. */
  rewrites: number;
}

/** A pending decision of a webhook. */
export interface PendingDecision extends JudgedEvent, StepBasis {
  webhookId: string;
  revision: number;
  rule: Rule;
  /** Whether the event is a test, which is sent even if the filter does not match. */
  isTest: boolean;
  /** What earlier steps have found; null at first. */
  progress: unknown;
  /** Whether any record of the event's workflow is quiet. */
  hasQuiet: boolean;
}

/** A quiet record: the webhook hears nothing about it until `until`, in epoch milliseconds. */
export interface QuietRow {
  workflowId: string;
  id: string;
  until: number;
  /** The JSON text of the record as it was sent; null if it was removed. */
  sent: string | null;
  /** The same of its newest version that was seen. */
  newest: string | null;
  /** The newest event that the row covers, and the revision of the rule that judged it. */
  sequence: number;
  revision: number;
  /** How often the record has matched since its digest was opened; null: it is in a cooldown. */
  matches: number | null;
}

/**
 * A row of a digest: `sent` is the state before the first match. Besides those of records, there are rows of other events
 * with the key `!` and their sequence, and for each workflow a row with the key `+`, which also counts the matches that
 * have no row.
 */
export interface DigestRow extends QuietRow {
  /** The key: see `recordKey`. */
  key: string;
  matches: number;
}

/** The digest of a webhook that is open, if any. */
export interface OpenDigest {
  /** When it ends; null: none is open. */
  until: number | null;
  /** Number of rows of records and events, and of their bytes. */
  rows: number;
  bytes: number;
  /** The row of the workflow; undefined if nothing of it has matched. */
  head: DigestRow | undefined;
  /** What the rule that is in force now says. */
  inForce: Digest | null;
}

/** SQL condition: the webhook exists. */
const exists = (id: string) => `(
  select true from webhook where webhook.team_id = $1 and webhook.id = ${id} and (webhook.state || '') <> 'deleted')`;

// One index seek for each webhook with pending decisions, and one for the first decision of each.
const PENDING = (after: string) => `
  select d.webhook_id from decision d /* use decision_state */
  where d.team_id = $1 and d.state = 'pending' ${after} order by d.webhook_id, d.event_sequence limit 1`;
const WAITING = `
  with recursive waiting (webhook_id) as (
    select (${PENDING('')})
    union all
    select (${PENDING('and d.webhook_id > waiting.webhook_id')}) from waiting where waiting.webhook_id is not null
  ),
  head as (
    select waiting.webhook_id, (
      select d.event_sequence from decision d /* use decision_state */
      where d.team_id = $1 and d.state = 'pending' and d.webhook_id = waiting.webhook_id
      order by d.event_sequence limit 1) as sequence
    from waiting where waiting.webhook_id is not null and ${exists('waiting.webhook_id')}
  )`;

const QUIET = (after: string) => `
  select q.webhook_id from quiet_record q /* use quiet_record_end */
  where q.team_id = $1 ${after} order by q.webhook_id, q.until, q.workflow_id, q.record_key limit 1`;
const RESTING = `
  with recursive resting (webhook_id) as (
    select (${QUIET('')})
    union all
    select (${QUIET('and q.webhook_id > resting.webhook_id')}) from resting where resting.webhook_id is not null
  ),
  ending as (
    select resting.webhook_id, (
      select q.until from quiet_record q /* use quiet_record_end */
      where q.team_id = $1 and q.webhook_id = resting.webhook_id
      order by q.until, q.workflow_id, q.record_key limit 1) as until
    from resting where resting.webhook_id is not null and ${exists('resting.webhook_id')}
  )`;

const EVENT = `
  event.sequence, event.id as "eventId", event.type, event.workflow_id as "workflowId", event.job_id as "jobId",
  event.body, event.created_at as "createdAt"`;

/** SQL for `StepBasis.rewrites`. */
export const rewritesOf = (workflowId: string): string => `
  (select rewrites from team where team.id = $1) + coalesce((
    select erasures from workflow where workflow.team_id = $1 and workflow.id = ${workflowId}), 0)`;

/** SQL: the webhooks after a place come first, so that all of them get their turn even if there are always more. */
const TURN = (id: string, after: string) => `${id} <= ${after}, ${id}`;

const AMONG_FIRST = `decision.event_sequence >= first.sequence
        and decision.event_sequence <= coalesce(first.last, ${Number.MAX_SAFE_INTEGER})`;
const HEADS = both(
  (pick) => `${WAITING}
  select webhook.id as "webhookId", webhook.rule_turn as turn, ${rewritesOf('event.workflow_id')} as rewrites,
    decision.revision, webhook_rule.rule, decision.progress, ${EVENT}, decision.delivery_id is not null as "isTest",
    (select true from quiet_record q where q.team_id = $1 and q.webhook_id = webhook.id
       and q.workflow_id = event.workflow_id order by q.record_key limit 1) as "hasQuiet"
  from (
    select head.*, (
      select d.event_sequence from decision d /* use decision_state */
      where d.team_id = $1 and d.state = 'pending' and d.webhook_id = head.webhook_id
      order by d.event_sequence limit 1 offset $4) as last
    from head where webhook_id <> all($2::text[]) order by ${TURN('webhook_id', '$5')} limit $3
  ) first
  ${pick({
    sqlite: `
      cross join decision indexed by decision_state on decision.team_id = $1 and decision.state = 'pending'
        and decision.webhook_id = first.webhook_id and ${AMONG_FIRST}
      cross join event on event.team_id = $1 and event.sequence = decision.event_sequence
      cross join webhook on webhook.team_id = $1 and webhook.id = decision.webhook_id
      cross join webhook_rule on webhook_rule.team_id = $1 and webhook_rule.webhook_id = decision.webhook_id
        and webhook_rule.revision = decision.revision`,
    // Rows are looked up one by one, because a planner without statistics might scan rows of other webhooks.
    postgres: `
      cross join lateral (
        select * from decision
        where decision.team_id = $1 and decision.state = 'pending' and decision.webhook_id = first.webhook_id
          and ${AMONG_FIRST} order by decision.event_sequence limit $4 + 1
      ) decision
      cross join lateral (
        select * from event where event.team_id = $1 and event.sequence = decision.event_sequence limit 1
      ) event
      cross join lateral (
        select * from webhook where webhook.team_id = $1 and webhook.id = decision.webhook_id limit 1
      ) webhook
      cross join lateral (
        select * from webhook_rule where webhook_rule.team_id = $1 and webhook_rule.webhook_id = decision.webhook_id
          and webhook_rule.revision = decision.revision limit 1
      ) webhook_rule`,
  })}
  order by webhook.id, event.sequence`,
);

const ENDING = `${RESTING}
  select webhook_id as "webhookId" from ending
  where until <= $4 and webhook_id <> all($2::text[]) and (
    select true from decision d /* use decision_state */
    where d.team_id = $1 and d.state = 'pending' and d.webhook_id = ending.webhook_id limit 1) is null
  order by ${TURN('webhook_id', '$5')} limit $3`;

/**
 * Returns the oldest pending decisions of up to `limit` webhooks of a team, up to `each` of a webhook (default: 1), and up
 * to `limit` other webhooks with records whose cooldown, or digest, has ended. Leaves out the webhooks of `except`, and begins with
 * the ids after `after`.
 */
export async function pending(
  view: View,
  {
    teamId,
    limit,
    now,
    each = 1,
    except = [],
    after = '',
  }: {
    teamId: string;
    limit: number;
    now: number;
    each?: number;
    except?: readonly string[];
    after?: string;
  },
): Promise<{ decisions: PendingDecision[]; ended: { webhookId: string }[] }> {
  const [heads, ended] = await Promise.all([
    view.db.all<Omit<PendingDecision, 'rule' | 'progress'> & { rule: string; progress: string | null }>(
      HEADS,
      teamId,
      except,
      limit,
      each - 1,
      after,
    ),
    view.db.all<{ webhookId: string }>(ENDING, teamId, except, limit, now, after),
  ]);
  const decisions = heads.map(({ rule, progress, hasQuiet, isTest, ...row }) => ({
    ...row,
    isTest: Boolean(isTest),
    rule: storedRule(rule),
    progress: progress === null ? null : JSON.parse(progress),
    hasQuiet: Boolean(hasQuiet),
  }));
  return { decisions, ended };
}

const QUIET_ROW = new Part(`
  workflow_id as "workflowId", record_id as id, until, sent, newest, event_sequence as sequence, revision, matches`);

/** Returns those of the records that are quiet for a webhook, even if their cooldown or digest has ended. */
export function quiet(
  view: View,
  {
    teamId,
    webhookId,
    workflowId,
    ids,
  }: { teamId: string; webhookId: string; workflowId: string; ids: readonly string[] },
): Promise<QuietRow[]> {
  return view.db.all<QuietRow>`
    select ${QUIET_ROW} from quiet_record
    where team_id = ${teamId} and webhook_id = ${webhookId} and workflow_id = ${workflowId}
      and record_key = any(${ids.map(recordKey)}::text[])`;
}

/** The key of the row of a workflow in a digest. */
export const HEAD_KEY = '+';

/** The key of the row of an event in a digest. */
export function eventKey(sequence: number): string {
  return `!${sequence}`;
}

export function isEventKey(key: string): boolean {
  return key.startsWith('!');
}

/** Reads the digest of a webhook that is open, as far as a decision about an event of a workflow needs it. */
export async function digest(
  view: View,
  { teamId, webhookId, workflowId }: { teamId: string; webhookId: string; workflowId: string },
): Promise<OpenDigest> {
  const [open, head, webhook] = await Promise.all([
    view.db.get<Pick<OpenDigest, 'until' | 'rows' | 'bytes'>>(OPEN, teamId, webhookId),
    view.db.get<DigestRow>`
      select ${QUIET_ROW}, record_key as key from quiet_record
      where team_id = ${teamId} and webhook_id = ${webhookId} and workflow_id = ${workflowId}
        and record_key = ${HEAD_KEY}`,
    view.db.get<{ rule: string | null }>`
      select rule from webhook where team_id = ${teamId} and id = ${webhookId}`,
  ]);
  const rule = webhook?.rule == null ? null : storedRule(webhook.rule);
  return { ...(open as NonNullable<typeof open>), head, inForce: rule?.digest ?? null };
}

const OPEN = `
  select min(until) as until, count(case when record_key <> '${HEAD_KEY}' then 1 end) as rows,
    coalesce(sum(coalesce(octet_length(sent), 0) + coalesce(octet_length(newest), 0)), 0) as bytes
  from quiet_record /* use quiet_record_digest */
  where team_id = $1 and webhook_id = $2 and matches is not null`;

/** A digest that has ended, with all of its rows. */
export interface EndedDigest extends StepBasis {
  kind: 'digest';
  /** The workflow to which the webhook is subscribed; null: all. */
  workflowId: string | null;
  /** The newest rule that has gathered. */
  revision: number;
  until: number;
  /** By workflow, oldest events first. */
  rows: DigestRow[];
}

/** Records whose cooldown has ended, and what is needed to send them in one message. */
export interface EndedCooldowns extends StepBasis {
  kind: 'cooldowns';
  workflowId: string;
  rule: Rule;
  revision: number;
  /** The newest event that the rows cover; null if it was deleted. */
  event: JudgedEvent | null;
  /** The first to end comes first. */
  rows: QuietRow[];
}

/**
 * Returns what has ended first for a webhook by `until`: its digest as a whole, or records whose cooldown has ended. These
 * are up to `limit` records of one workflow and one revision of the rule, those that ended first, and fewer if they are
 * long. Undefined if nothing has ended.
 */
export async function ended(
  view: View,
  { teamId, webhookId, until, limit }: { teamId: string; webhookId: string; until: number; limit: number },
): Promise<EndedCooldowns | EndedDigest | undefined> {
  const { db } = view;
  const head = await db.get<
    Pick<EndedCooldowns, 'workflowId' | 'revision' | 'turn' | 'rewrites'> & { isDigest: boolean }
  >(FIRST_ENDED, teamId, webhookId, until);
  if (head === undefined) return undefined;
  const { isDigest, ...first } = head;
  if (isDigest) return endedDigest(view, { teamId, webhookId });
  const of = [teamId, webhookId, until, first.workflowId, first.revision] as const;
  const sizes = await db.all<{ bytes: number }>(`select ${BYTES} as bytes ${ENDED}`, ...of, limit);
  const found = await db.all<QuietRow>(`select ${QUIET_ROW} ${ENDED}`, ...of, rowsWithin(sizes));
  const rule = await db.get<{ rule: string }>`
    select rule from webhook_rule
    where team_id = ${teamId} and webhook_id = ${webhookId} and revision = ${first.revision}`;
  const newest = Math.max(...found.map(({ sequence }) => sequence));
  const event = await db.get<JudgedEvent>(
    `select ${EVENT} from event where team_id = $1 and sequence = $2`,
    teamId,
    newest,
  );
  if (rule === undefined || found.length === 0) return undefined;
  return { kind: 'cooldowns', ...first, rule: storedRule(rule.rule), event: event ?? null, rows: found };
}

/** Reads the digest of a webhook that is open, whenever it ends; undefined if none is. */
export async function endedDigest(
  view: View,
  { teamId, webhookId }: { teamId: string; webhookId: string },
): Promise<EndedDigest | undefined> {
  const webhook = await view.db.get<Pick<EndedDigest, 'workflowId' | 'turn' | 'rewrites'>>(
    DIGESTED,
    teamId,
    webhookId,
  );
  const rows = await view.db.all<DigestRow>`
    select ${QUIET_ROW}, record_key as key from quiet_record /* use quiet_record_digest */
    where team_id = ${teamId} and webhook_id = ${webhookId} and matches is not null
    order by workflow_id, event_sequence, record_key`;
  if (webhook === undefined || rows.length === 0) return undefined;
  const revision = Math.max(...rows.map((row) => row.revision));
  const until = Math.min(...rows.map((row) => row.until));
  return { kind: 'digest', ...webhook, revision, until, rows };
}

// The rows are texts of their own, so that only erasures of texts change them.
const DIGESTED = `
  select workflow_id as "workflowId", rule_turn as turn,
    (select rewrites from team where team.id = $1) as rewrites
  from webhook where team_id = $1 and id = $2 and (state || '') <> 'deleted'`;

const FIRST_ENDED = `
  select q.workflow_id as "workflowId", q.revision, webhook.rule_turn as turn,
         ${rewritesOf('q.workflow_id')} as rewrites, q.matches is not null as "isDigest"
  from quiet_record q /* use quiet_record_end */
  cross join webhook
  where q.team_id = $1 and q.webhook_id = $2 and q.until <= $3
    and webhook.team_id = $1 and webhook.id = $2 and webhook.state <> 'deleted'
  order by q.until, q.workflow_id, q.record_key limit 1`;
const BYTES = `coalesce(octet_length(sent), 0) + coalesce(octet_length(newest), 0)`;
const ENDED = `
  from quiet_record /* use quiet_record_end */
  where team_id = $1 and webhook_id = $2 and until <= $3 and workflow_id = $4 and revision = $5 and matches is null
  order by until, workflow_id, record_key limit $6`;

/** Maximum number of bytes of the records that one message is made from. */
const MAX_ENDED_BYTES = 8 * MAX_BATCH_BYTES;

/** How many of the next rows fit into one message; at least one. */
function rowsWithin(sizes: readonly { bytes: number }[]): number {
  let left = MAX_ENDED_BYTES;
  const over = sizes.findIndex(({ bytes }) => {
    left -= bytes;
    return left < 0;
  });
  return over === -1 ? sizes.length : Math.max(1, over);
}

/** When the first cooldown or digest of a team's existing webhooks ends; null if no record is quiet. */
export async function firstEnd(view: View, { teamId }: { teamId: string }): Promise<number | null> {
  const row = await view.db.get<{ at: number | null }>(
    `${RESTING} select min(until) as at from ending`,
    teamId,
  );
  return row?.at ?? null;
}

/** When the oldest event with a pending decision happened; null if none is pending. */
export async function oldestPending(view: View, { teamId }: { teamId: string }): Promise<number | null> {
  const row = await view.db.get<{ at: number | null }>(OLDEST, teamId);
  return row?.at ?? null;
}

const OLDEST = `${WAITING}
  select min((select d.created_at from decision d where d.team_id = $1 and d.event_sequence = head.sequence
              and d.webhook_id = head.webhook_id)) as at
  from head`;

/**
 * Raises when decisions of a team are due: now if one is pending, else when the first cooldown or digest ends. Returns the new
 * time; null if nothing waits.
 */
export function raise(tx: Tx, { teamId }: { teamId: string }): Promise<number | null> {
  return raiseItem(tx, { teamId, item: 'decisions' }, async () =>
    earlier((await oldestPending(tx, { teamId })) === null ? null : tx.now, await firstEnd(tx, { teamId })),
  );
}

/** A decision as it is listed. */
export interface Decision {
  webhookId: string;
  sequence: number;
  eventId: string;
  type: EventType;
  workflowId: string | null;
  state: DecisionState;
  /** How many differences matched, of how many; null while pending, or if the filter reads no records. */
  matched: number | null;
  examined: number | null;
  /** Why nothing was sent, as a sentence. */
  reason: string | null;
  deliveryId: string | null;
  createdAt: number;
  /** The filter that decided. */
  filter: string | null;
}

/** A place in a list of decisions: newest event first, then by webhook. */
export interface DecisionPlace {
  sequence: number;
  webhookId: string;
}

/** Lists decisions about the events of one webhook, about one event, or of a team, after the place `before`. */
export async function list(
  view: View,
  input: {
    teamId: string;
    webhookId?: string | undefined;
    eventId?: string | undefined;
    states?: readonly DecisionState[] | undefined;
    before?: DecisionPlace | undefined;
    limit: number;
  },
): Promise<Decision[]> {
  const { teamId, webhookId, eventId, states = DECISION_STATES, limit } = input;
  const { sequence, webhookId: after } = input.before ?? { sequence: Number.MAX_SAFE_INTEGER, webhookId: '' };
  const values = [teamId, sequence, after, limit];
  const chosen = DECISION_STATES.filter((state) => states.includes(state));
  if (chosen.length === 0) return [];
  const page =
    eventId !== undefined
      ? OF_EVENT(chosen, webhookId !== undefined)
      : webhookId === undefined
        ? OF_TEAM(chosen)
        : OF_WEBHOOK(chosen);
  const given = [eventId, webhookId].filter((one) => one !== undefined);
  const rows = await view.db.all<Decision & { rule: string | null }>(LISTED(page), ...values, ...given);
  return rows.map(({ rule, ...row }) => ({ ...row, filter: rule === null ? null : JSON.parse(rule).filter }));
}

const inStates = (states: readonly DecisionState[]) =>
  `state in (${states.map((one) => `'${one}'`).join(', ')})`;
const NEWEST_FIRST = 'order by event_sequence desc, webhook_id limit $4';
const OF_TEAM = (states: readonly DecisionState[]) => `
  select event_sequence, webhook_id from decision
  where team_id = $1 and event_sequence <= $2 and (event_sequence < $2 or webhook_id > $3) and ${inStates(states)}
  ${NEWEST_FIRST}`;
const OF_EVENT = (states: readonly DecisionState[], ofOne: boolean) => `
  select event_sequence, webhook_id from decision
  where team_id = $1 and event_sequence = (select sequence from event where event.team_id = $1 and event.id = $5)
    and (event_sequence < $2 or (event_sequence = $2 and webhook_id > $3)) and ${inStates(states)}
    ${ofOne ? 'and webhook_id = $6' : ''}
  ${NEWEST_FIRST}`;
/** One index seek per state, so that decisions in a rare state are found quickly among many others. */
const OF_WEBHOOK = (states: readonly DecisionState[]) =>
  `${states
    .map(
      (state) => `select * from (
        select event_sequence, webhook_id from decision /* use decision_state */
        where team_id = $1 and state = '${state}' and webhook_id = $5 and event_sequence < $2 and $3::text is not null
        order by event_sequence desc limit $4) of_${state}`,
    )
    .join(' union all ')} ${NEWEST_FIRST}`;
const LISTED = (page: string) =>
  both(
    (pick) => `
  select decision.webhook_id as "webhookId", decision.event_sequence as sequence, event.id as "eventId", event.type,
    event.workflow_id as "workflowId", decision.state, decision.matched, decision.examined, decision.reason,
    decision.delivery_id as "deliveryId", decision.created_at as "createdAt",
    (select rule from webhook_rule where webhook_rule.team_id = $1 and webhook_rule.webhook_id = page.webhook_id
       and webhook_rule.revision = decision.revision) as rule
  from (${page}) page
  ${pick({
    sqlite: `
      cross join decision on decision.team_id = $1 and decision.event_sequence = page.event_sequence
        and decision.webhook_id = page.webhook_id
      cross join event on event.team_id = $1 and event.sequence = page.event_sequence`,
    postgres: `
      cross join lateral (
        select * from decision where decision.team_id = $1 and decision.event_sequence = page.event_sequence
          and decision.webhook_id = page.webhook_id limit 1
      ) decision
      cross join lateral (
        select * from event where event.team_id = $1 and event.sequence = page.event_sequence limit 1
      ) event`,
  })}
  order by decision.event_sequence desc, decision.webhook_id`,
  );
