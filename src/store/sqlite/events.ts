/** Events, and the deliveries they cause: written in the transaction of what happened. */
import type { DeliveryOrigin } from '../../model/delivery.ts';
import { type EventType, eventBody } from '../../model/event.ts';
import { newId } from '../../std/id.ts';
import { touchLane } from '../touched.ts';
import type { EventOperations, StoredEvent } from '../webhook-operations.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof EventOperations> = Parameters<EventOperations[Name]>[0];

interface EventRow {
  team_id: string;
  id: string;
  sequence: number;
  type: EventType;
  workflow_id: string | null;
  job_id: string | null;
  body: string;
  created_at: number;
}

interface NewEvent {
  teamId: string;
  type: EventType;
  /** null: of the team, so that only webhooks subscribed to the whole team get it. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace that it belongs to, as `traceparent`. */
  trace?: string | null;
}

/**
 * Appends an event and, for every webhook subscribed to it at this moment, a delivery that is due now. A paused webhook
 * gets one too, which waits until the webhook is resumed or unsubscribed.
 */
export function appendEvent(tx: Tx, event: NewEvent, options: { exceptWebhookId?: string } = {}): void {
  const { sequence } = writeEvent(tx, event);
  const { teamId } = event;
  for (const id of subscribed(tx, event)) {
    if (id === options.exceptWebhookId) continue;
    addDelivery(tx, { teamId, webhookId: id, sequence, origin: 'event' });
  }
}

/** Appends an event for one webhook alone, whatever it is subscribed to. */
export function appendTestEvent(
  tx: Tx,
  event: NewEvent,
  webhookId: string,
): { eventId: string; deliveryId: string } {
  const { id, sequence } = writeEvent(tx, event);
  const { teamId } = event;
  return { eventId: id, deliveryId: addDelivery(tx, { teamId, webhookId, sequence, origin: 'test' }) };
}

/**
 * The webhooks subscribed to an event, through its workflow or the whole team, in order of creation. Two queries,
 * sorted here: a single ordered one filled two temporary tables each time.
 */
function subscribed(tx: Tx, { teamId, workflowId, type }: NewEvent): string[] {
  const of = workflowId === null ? [''] : [workflowId, ''];
  const found = of.flatMap((workflow) =>
    tx.db.all<{ id: string }>(SUBSCRIBED, teamId, workflow, `|${type}|`),
  );
  return found.map(({ id }) => id).sort();
}

// Names the index, because the planner would scan all webhooks of the team, deleted ones included.
const SUBSCRIBED = `
  select id from webhook indexed by webhook_same
  where team_id = ? and coalesce(workflow_id, '') = ? and state <> 'deleted'
    and (instr(fires_for, ?) > 0 or instr(fires_for, '|*|') > 0)`;

function writeEvent(tx: Tx, event: NewEvent): { id: string; sequence: number } {
  const { teamId, type, workflowId, jobId } = event;
  const sequence = nextSequence(tx, teamId);
  const id = newId('evt', tx.now);
  tx.db.run(
    `insert into event (team_id, sequence, id, type, workflow_id, job_id, body, created_at, trace)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    teamId,
    sequence,
    id,
    type,
    workflowId,
    jobId,
    eventBody({ ...event, id, at: tx.now, sequence }),
    tx.now,
    event.trace ?? null,
  );
  return { id, sequence };
}

/** The next sequence number of a team. Stored once at the end of the batch, which may hold many events of a team. */
function nextSequence(tx: Tx, teamId: string): number {
  const last = tx.sequences.get(teamId) ?? lastSequence(tx, teamId);
  if (last === undefined) throw new Error(`The team ${teamId} of an event does not exist`);
  tx.sequences.set(teamId, last + 1);
  return last + 1;
}

/** Stores the teams' last sequence numbers: the last thing before a commit. */
export function writeSequences(tx: Tx): void {
  for (const [teamId, sequence] of tx.sequences) {
    tx.db.run('update team set last_sequence = ? where id = ?', sequence, teamId);
  }
}

function addDelivery(
  tx: Tx,
  delivery: { teamId: string; webhookId: string; sequence: number; origin: DeliveryOrigin },
): string {
  const { teamId, webhookId, sequence, origin } = delivery;
  const id = newId('dlv', tx.now);
  tx.db.run(
    `insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin)
     values (?, ?, ?, ?, 'waiting', ?, ?, ?)`,
    teamId,
    id,
    webhookId,
    sequence,
    tx.now,
    tx.now,
    origin,
  );
  touchLane(tx, teamId, webhookId);
  return id;
}

export function list(view: View, { teamId, afterSequence, limit }: Input<'list'>): StoredEvent[] {
  return view.db
    .all<EventRow>(
      'select * from event where team_id = ? and sequence > ? order by sequence limit ?',
      teamId,
      afterSequence,
      limit,
    )
    .map(toEvent);
}

export function get(view: View, { teamId, id }: Input<'get'>): StoredEvent | undefined {
  const row = view.db.get<EventRow>('select * from event where team_id = ? and id = ?', teamId, id);
  return row && toEvent(row);
}

/** How many events are searched for one of a type: there is no index over types. */
const LOOKED_THROUGH = 1_000;

export function latest(view: View, { teamId, type }: Input<'latest'>): StoredEvent | undefined {
  const row = view.db.get<EventRow>(
    `select * from (select * from event where team_id = ? order by sequence desc limit ?)
     where type = ? order by sequence desc limit 1`,
    teamId,
    LOOKED_THROUGH,
    type,
  );
  return row && toEvent(row);
}

export function newest(view: View, { teamId }: Input<'newest'>): number {
  return lastSequence(view, teamId) ?? 0;
}

function lastSequence(view: View, teamId: string): number | undefined {
  const sql = 'select last_sequence as sequence from team where id = ?';
  return view.db.get<{ sequence: number }>(sql, teamId)?.sequence;
}

function toEvent(row: EventRow): StoredEvent {
  return {
    teamId: row.team_id,
    id: row.id,
    sequence: row.sequence,
    type: row.type,
    workflowId: row.workflow_id,
    jobId: row.job_id,
    body: row.body,
    createdAt: row.created_at,
  };
}
