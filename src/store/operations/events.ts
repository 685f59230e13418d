/** Events and their deliveries, written in the transaction of the change that they report, and lists of events. */

import type { DeliveryOrigin } from '../../model/delivery.ts';
import { type EventType, eventBody } from '../../model/event.ts';
import type { Webhook } from '../../model/webhook.ts';
import { newId } from '../../std/id.ts';
import { idsBetween } from '../page.ts';
import { type InTeam, UNFINISHED } from '../rows.ts';
import { type ColumnType, type Either, insertAll, Part } from '../sql.ts';
import {
  type Agenda,
  type NewEvent,
  noteLane,
  type PendingEvent,
  type Tx,
  type View,
} from '../transaction.ts';
import { AGENDA, afterEvents, lowerAgenda, makeDue, touchDecisions, writeDues } from './agenda.ts';

export interface StoredEvent {
  teamId: string;
  id: string;
  sequence: number;
  type: EventType;
  workflowId: string | null;
  jobId: string | null;
  body: string;
  createdAt: number;
}

/**
 * Appends an event and, for every webhook that is subscribed to the event when the transaction ends, a delivery that is
 * due now or, if the webhook has a rule, a pending decision (`rules/decisions.ts`). A delivery to a paused webhook waits until the webhook is resumed or unsubscribed.
 */
export function appendEvent(tx: Tx, event: NewEvent, options: { exceptWebhookId?: string } = {}): void {
  const { type, jobId } = event;
  const id = type === 'workflow_queued' && jobId !== null ? queuedEventId(jobId) : newId('evt', tx.now);
  tx.events.push({ ...event, ...options, id, at: tx.now });
}

/**
 * Appends an event for one webhook only, even if the webhook is not subscribed to it, and without asking its filter. If
 * the webhook has a format, the delivery is made by a decision, because no transaction evaluates a template.
 */
export function appendTestEvent(
  tx: Tx,
  event: NewEvent,
  { id: webhookId, rule, ruleRevision }: Pick<Webhook, 'id' | 'rule' | 'ruleRevision'>,
): { eventId: string; deliveryId: string } {
  const eventId = newId('evt', tx.now);
  const deliveryId = newId('dlv', tx.now);
  const revision = rule === null || rule.format === 'standard' ? null : ruleRevision;
  tx.events.push({ ...event, id: eventId, at: tx.now, only: { deliveryId, webhookId, revision } });
  return { eventId, deliveryId };
}

/** Appends an event for one webhook only, without asking its filter. Its rule with this revision makes the delivery. */
export function appendOwnEvent(
  tx: Tx,
  event: NewEvent,
  { webhookId, revision }: { webhookId: string; revision: number },
): void {
  tx.events.push({
    ...event,
    id: newId('evt', tx.now),
    at: tx.now,
    only: { webhookId, revision, deliveryId: null },
  });
}

/**
 * Numbers and writes the events of a transaction, with their deliveries, and writes what the transaction has made due.
 * Call this last, just before the commit, because it locks the rows of the teams. The lock ensures that no event becomes visible before an event with a
 * smaller sequence. Other transactions of the team wait only for the commit.
 */
export async function writeEvents(tx: Tx): Promise<void> {
  const events = tx.events.splice(0);
  if (events.length === 0 && tx.dues.size === 0) return;
  const teams = Map.groupBy(events, ({ teamId }) => teamId);
  for (const teamId of teams.keys()) afterEvents(tx, teamId);
  // Teams are locked in the order of their ids, so that no two transactions deadlock.
  const sorted = [...tx.dues.keys()].sort();
  await Promise.all(
    sorted.map((teamId) => {
      const ofTeam = teams.get(teamId);
      return ofTeam === undefined ? writeDues(tx, teamId) : writeTeam(tx, teamId, ofTeam);
    }),
  );
}

async function writeTeam(tx: Tx, teamId: string, events: readonly PendingEvent[]): Promise<void> {
  // These are three statements, because the second and third must see everything that was committed before the first
  // got its lock.
  const [team, newest, webhooks] = await Promise.all([
    tx.db.get<{ sequence: number } & Agenda>(LOCK_TEAM, teamId),
    tx.db.get<{ sequence: number }>(NEWEST, teamId),
    subscribed(tx, teamId, events),
  ]);
  if (team === undefined) throw new Error(`Cannot write an event: the team ${teamId} does not exist`);
  const last = Math.max(team.sequence, newest?.sequence ?? 0);
  const numbered = events.map((event, at) => ({ ...event, sequence: last + 1 + at }));
  const decisions: (readonly (string | number | null)[])[] = [];
  const deliveries = numbered.flatMap((event) => {
    const { type, workflowId, sequence, only, exceptWebhookId, at } = event;
    const delivery = (id: string, webhookId: string, origin: DeliveryOrigin) =>
      [teamId, id, webhookId, sequence, 'waiting', at, at, origin] as const;
    const decide = (webhookId: string, revision: number, deliveryId: string | null = null) =>
      decisions.push([teamId, sequence, webhookId, revision, 'pending', at, deliveryId]);
    if (only !== undefined) {
      const { webhookId, revision, deliveryId } = only;
      if (deliveryId !== null && revision === null) return [delivery(deliveryId, webhookId, 'test')];
      decide(webhookId, revision as number, deliveryId);
      return [];
    }
    const ofTeam = webhooks.get('') ?? [];
    const ofWorkflow = workflowId === null ? [] : (webhooks.get(workflowId) ?? []);
    const subscribers = [...ofTeam, ...ofWorkflow].filter(
      (one) => one.id !== exceptWebhookId && fires(one, type),
    );
    return subscribers.flatMap(({ id, revision }) => {
      if (revision === null) return [delivery(newId('dlv', at), id, 'event')];
      decide(id, revision);
      return [];
    });
  });
  for (const [, , webhookId] of deliveries) noteLane(tx.touched, teamId, webhookId);
  if (deliveries.length > 0) makeDue(tx, teamId, 'lanes', tx.now);
  if (decisions.length > 0) touchDecisions(tx, teamId, tx.now);
  const noLongerWaiting = new Set(numbered.filter(isAfterQueued).map(({ jobId }) => jobId as string));
  const inserted = Promise.all([
    lowerAgenda(tx, teamId, team),
    insertAll(
      tx.db,
      'event',
      tx.db.pick(EVENT_COLUMNS),
      numbered.map((event) => [
        teamId,
        event.sequence,
        event.id,
        event.type,
        event.workflowId,
        event.jobId,
        eventBody(event),
        event.at,
        event.trace ?? null,
        event.type === 'workflow_queued' && !noLongerWaiting.has(event.jobId ?? '') ? 0 : 1,
      ]),
    ),
    insertAll(tx.db, 'delivery', DELIVERY_COLUMNS, deliveries),
    insertAll(tx.db, 'decision', DECISION_COLUMNS, decisions),
    tx.db.pick({ sqlite: () => indexQueued(tx, teamId, [...noLongerWaiting]), postgres: async () => {} })(),
  ]);
  await tx.db.last(inserted);
}

const LOCK_TEAM = `select last_sequence as sequence, ${AGENDA} from team where id = $1 for no key update`;

const SHARED_COLUMNS = {
  team_id: 'text',
  sequence: 'bigint',
  id: 'text',
  type: 'text',
  workflow_id: 'text',
  job_id: 'text',
  body: 'text',
  created_at: 'bigint',
  trace: 'text',
} satisfies Record<string, ColumnType>;
const EVENT_COLUMNS = {
  sqlite: { ...SHARED_COLUMNS, indexed: 'integer' },
  postgres: SHARED_COLUMNS,
} satisfies Either<Record<string, ColumnType>>;

/**
 * Returns the id of a job's event `workflow_queued`, which differs from the id of the job only in the prefix. Events
 * that were written before schema version 21 have other ids.
 */
function queuedEventId(jobId: string): string {
  return `evt${jobId.slice('job'.length)}`;
}

/** Whether an event is the first event of its job after `workflow_queued`. */
function isAfterQueued({ type, jobId, data }: NewEvent): boolean {
  if (jobId === null || type === 'workflow_queued') return false;
  return type === 'workflow_started' || data.startedAt === undefined;
}

/** Adds the events `workflow_queued` of these jobs to the index `event_workflow` of SQLite. */
async function indexQueued({ db }: Tx, teamId: string, jobIds: readonly string[]): Promise<void> {
  for (const jobId of jobIds) {
    await db.run`
      update event /* use event_id */ set indexed = 1
      where team_id = ${teamId} and id = ${queuedEventId(jobId)} and indexed = 0`;
  }
}

export const DELIVERY_COLUMNS = {
  team_id: 'text',
  id: 'text',
  webhook_id: 'text',
  event_sequence: 'bigint',
  state: 'text',
  next_at: 'bigint',
  created_at: 'bigint',
  origin: 'text',
} satisfies Record<string, ColumnType>;

const DECISION_COLUMNS = {
  team_id: 'text',
  event_sequence: 'bigint',
  webhook_id: 'text',
  revision: 'integer',
  state: 'text',
  created_at: 'bigint',
  delivery_id: 'text',
} satisfies Record<string, ColumnType>;

interface Subscription {
  id: string;
  workflowId: string;
  firesFor: string;
  /** The revision of its rule; null: it has none. */
  revision: number | null;
}

/**
 * Returns the webhooks that receive some of these events, oldest first, by workflow. The key `''` is for
 * subscriptions to the whole team. The rows are sorted here, because SQLite would build a temporary table to sort them.
 */
async function subscribed(
  tx: Tx,
  teamId: string,
  events: readonly PendingEvent[],
): Promise<Map<string, Subscription[]>> {
  const wanted = events.filter(({ only }) => only === undefined);
  if (wanted.length === 0) return new Map();
  const workflows = new Set(['', ...wanted.map(({ workflowId }) => workflowId ?? '')]);
  const types = [...new Set(wanted.map(({ type }) => type))];
  const found = await tx.db.all<Subscription>(
    SUBSCRIBED(tx.db.pick(WANTED), types.length),
    teamId,
    [...workflows],
    ...types.map(inBars),
  );
  found.sort((one, other) => (one.id < other.id ? -1 : 1));
  return Map.groupBy(found, ({ workflowId }) => workflowId);
}

// Webhooks of the workflows $2. SQLite would otherwise scan all webhooks of the team, deleted ones included, so the index
// is named. PostgreSQL finds only that index in this order.
const WANTED = {
  sqlite: `
    select * from webhook /* use webhook_same */
    where team_id = $1 and coalesce(workflow_id, '') = any($2::text[]) and state <> 'deleted'`,
  postgres: `
    select webhook.* from unnest($2::text[]) as wanted (id) cross join lateral (
      select * from webhook
      where team_id = $1 and coalesce(workflow_id, '') = wanted.id and state <> 'deleted' order by url, event_set
    ) webhook`,
};
const SUBSCRIBED = (wanted: string, types: number) => `
  select id, coalesce(workflow_id, '') as "workflowId", fires_for as "firesFor", rule_revision as revision from (${wanted}) webhook
  where (strpos(fires_for, '|*|') > 0${Array.from({ length: types }, (_, at) => ` or strpos(fires_for, $${at + 3}) > 0`).join('')})`;

const inBars = (type: EventType) => `|${type}|`;

function fires({ firesFor }: Subscription, type: EventType): boolean {
  return firesFor.includes('|*|') || firesFor.includes(inBars(type));
}

/**
 * Looks up the sequence of a team's newest event. A counter in the team's row would leave a dead row per event, and
 * during a long transaction everyone who locks the row would read all of these dead rows. A lock leaves no dead row.
 * `last_sequence` is only the sequence with which the team started in this database, which can be higher than that of
 * any event here if the database is a copy.
 */
const NEWEST = 'select sequence from event where team_id = $1 order by sequence desc limit 1';

export const EVENT = new Part(`
  select team_id as "teamId", id, sequence, type, workflow_id as "workflowId", job_id as "jobId", body,
         created_at as "createdAt"
  from event`);

/**
 * Lists a team's events after a sequence number, in order. A reader that continues after the last event it received
 * misses no event, even if transactions commit late.
 */
export function list(
  view: View,
  { teamId, afterSequence, limit }: { teamId: string; afterSequence: number; limit: number },
): Promise<StoredEvent[]> {
  return view.db.all<StoredEvent>`
    ${EVENT} where team_id = ${teamId} and sequence > ${afterSequence} order by sequence limit ${limit}`;
}

export function get(view: View, { teamId, id }: InTeam): Promise<StoredEvent | undefined> {
  return view.db.get<StoredEvent>`${EVENT} where team_id = ${teamId} and id = ${id}`;
}

/** Returns the sequence of the team's newest event, or 0 if the team has no events. */
export async function newestSequence(view: View, { teamId }: { teamId: string }): Promise<number> {
  const team = await view.db.get<{ sequence: number }>`
    select greatest(last_sequence, coalesce((
      select sequence from event where event.team_id = team.id order by sequence desc limit 1), 0)) as sequence
    from team where id = ${teamId}`;
  return team?.sequence ?? 0;
}

/** Selects events of a team by their time, in epoch milliseconds. Both bounds are inclusive. */
export interface EventFilter {
  teamId: string;
  workflowId?: string;
  /** Pass the job's workflow together with `jobId`, because the search for a job uses the index on workflows. */
  jobId?: string;
  types?: readonly EventType[];
  since?: number;
  until?: number;
}

export interface EventPage {
  events: StoredEvent[];
  /** The value of `before` for the next page; null after the last page. */
  next: string | null;
}

/**
 * Returns a page of events, newest first. Filtering by type or job scans a limited number of events per call, so any
 * page may be short or even empty.
 */
export async function history(
  view: View,
  input: EventFilter & { before?: string; limit: number },
): Promise<EventPage> {
  const { teamId, workflowId, jobId, types, limit } = input;
  const { first, end, since, until } = idsBetween('evt', input);
  const isSought = types !== undefined || jobId !== undefined;
  const most = isSought ? Math.max(MAX_SCANNED, limit + 1) : limit + 1;
  const scanned = await view.db.all<{ id: string; type: EventType; jobId: string | null }>(
    workflowId === undefined ? SCAN : SCAN_WORKFLOW,
    ...[teamId, first, end, most, since, until],
    ...(workflowId === undefined ? [] : [workflowId]),
  );
  const fitting = scanned.filter(
    (event) => (types?.includes(event.type) ?? true) && (jobId === undefined || event.jobId === jobId),
  );
  const ids = fitting.slice(0, limit).map(({ id }) => id);
  const events = await view.db.all<StoredEvent>`
    ${EVENT} where team_id = ${teamId} and id = any(${ids}) order by id desc`;
  if (fitting.length > limit) return { events, next: ids.at(-1) ?? null };
  return { events, next: scanned.length < most ? null : (scanned.at(-1)?.id ?? null) };
}

// These statements do not read bodies. They are read only for events on the page.
const SELECT_SCANNED = 'select id, type, job_id as "jobId" from event';
const IN_RANGE = 'team_id = $1 and id >= $2 and id < $3 and created_at between $5 and $6';
const NEWEST_FIRST = 'order by id desc limit $4';
const SCAN = `${SELECT_SCANNED} /* use event_id */ where ${IN_RANGE} ${NEWEST_FIRST}`;
const SCAN_WORKFLOW = {
  // The second part finds the events that the index lacks. A workflow has at most two unfinished jobs.
  sqlite: `
    select * from (
      ${SELECT_SCANNED} /* use event_workflow */
      where ${IN_RANGE} and workflow_id = $7 and indexed = 1 ${NEWEST_FIRST})
    union all
    ${SELECT_SCANNED} /* use event_id */
    where ${IN_RANGE} and indexed = 0 and id in (
      select 'evt' || substr(id, 4) from job /* use job_slot */
      where team_id = $1 and workflow_id = $7 and ${UNFINISHED})
    ${NEWEST_FIRST}`,
  postgres: `${SELECT_SCANNED} where ${IN_RANGE} and workflow_id = $7 ${NEWEST_FIRST}`,
};

/** Maximum number of events scanned for a page. Event types and jobs have no index. */
const MAX_SCANNED = 2_000;
