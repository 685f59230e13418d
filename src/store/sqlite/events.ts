/** Events, and the deliveries that they cause: written in the transaction of what happened. */
import type { DeliveryOrigin } from '../../model/delivery.ts';
import { type EventType, eventBody } from '../../model/event.ts';
import { newId } from '../../std/id.ts';
import { touchLane } from '../touched.ts';
import type { StoredEvent } from '../webhook-operations.ts';
import type { Tx, View } from './transaction.ts';

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
  /** null: of no workflow, so that only those hear of it who hear of the whole team. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace that it belongs to, as `traceparent`. */
  trace?: string | null;
}

/**
 * Appends an event and, for every webhook that is subscribed to it at this moment, a delivery that is due now.
 * A paused webhook gets its delivery too: it waits until the webhook is resumed or unsubscribed.
 */
export function appendEvent(tx: Tx, event: NewEvent, options: { exceptWebhookId?: string } = {}): void {
  const { sequence } = writeEvent(tx, event);
  const { teamId } = event;
  for (const id of subscribed(tx, event)) {
    if (id === options.exceptWebhookId) continue;
    addDelivery(tx, { teamId, webhookId: id, sequence, origin: 'event' });
  }
}

/** Appends an event that goes to one webhook alone, whatever it has subscribed. */
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
 * The webhooks that hear of an event, of its workflow and of the whole team, in the order in which they were made. Two
 * looks, and sorted here: one for both, in order, filled two tables of its own each time.
 */
function subscribed(tx: Tx, { teamId, workflowId, type }: NewEvent): string[] {
  const of = workflowId === null ? [''] : [workflowId, ''];
  const found = of.flatMap((workflow) =>
    tx.db.all<{ id: string }>(SUBSCRIBED, teamId, workflow, `|${type}|`),
  );
  return found.map(({ id }) => id).sort();
}

// The index is named, because the planner would walk through all webhooks of the team, the deleted ones included.
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

/** The next number of a team's events. Written at the end of the batch, for many of one team come in one. */
function nextSequence(tx: Tx, teamId: string): number {
  const last = tx.sequences.get(teamId) ?? lastSequence(tx, teamId);
  if (last === undefined) throw new Error(`The team ${teamId} of an event does not exist`);
  tx.sequences.set(teamId, last + 1);
  return last + 1;
}

/** Writes down how far the numbers of events have come: the last thing before a commit. */
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

export function list(
  view: View,
  { teamId, afterSequence, limit }: { teamId: string; afterSequence: number; limit: number },
): StoredEvent[] {
  return view.db
    .all<EventRow>(
      'select * from event where team_id = ? and sequence > ? order by sequence limit ?',
      teamId,
      afterSequence,
      limit,
    )
    .map(toEvent);
}

export function get(view: View, { teamId, id }: { teamId: string; id: string }): StoredEvent | undefined {
  const row = view.db.get<EventRow>('select * from event where team_id = ? and id = ?', teamId, id);
  return row && toEvent(row);
}

/** How many events are looked through for one of a type: there is no index over types. */
const LOOKED_THROUGH = 1_000;

export function latest(
  view: View,
  { teamId, type }: { teamId: string; type: EventType },
): StoredEvent | undefined {
  const row = view.db.get<EventRow>(
    `select * from (select * from event where team_id = ? order by sequence desc limit ?)
     where type = ? order by sequence desc limit 1`,
    teamId,
    LOOKED_THROUGH,
    type,
  );
  return row && toEvent(row);
}

export function newest(view: View, { teamId }: { teamId: string }): number {
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
