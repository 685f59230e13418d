/** Events and their deliveries, written in the transaction of what they report. */
import type { DeliveryOrigin } from '../../model/delivery.ts';
import { type EventType, eventBody } from '../../model/event.ts';
import { newId } from '../../std/id.ts';
import { touchLane } from '../touched.ts';
import type { StoredEvent } from '../webhook-operations.ts';
import type { Tx, View } from './transaction.ts';

interface NewEvent {
  teamId: string;
  type: EventType;
  /** null: of no workflow; only subscriptions to the whole team receive it. */
  workflowId: string | null;
  jobId: string | null;
  finishedAt: number | null;
  data: Record<string, unknown>;
  /** The trace that it belongs to, in the form of `traceparent`. */
  trace?: string | null;
}

/**
 * Appends an event and, for every webhook that is subscribed to it at this moment, a delivery that is due now. A paused
 * webhook gets one too, which waits until the webhook is resumed or unsubscribed.
 *
 * Locks the team's row until the commit, so that no event becomes visible before one with a smaller sequence. Call it
 * last in a transaction, after taking every other lock. Concurrent calls in one transaction are numbered in order.
 */
export async function appendEvent(
  tx: Tx,
  event: NewEvent,
  options: { exceptWebhookId?: string } = {},
): Promise<void> {
  const { teamId, workflowId, type } = event;
  const [sequence, subscribed] = await Promise.all([
    nextSequence(tx, teamId),
    tx.db.all<{ id: string }>(SUBSCRIBED, teamId, workflowId ?? '', `|${type}|`),
  ]);
  const webhookIds = subscribed.map(({ id }) => id).filter((id) => id !== options.exceptWebhookId);
  await Promise.all([
    insertEvent(tx, event, sequence),
    addDeliveries(tx, { teamId, webhookIds, sequence, origin: 'event' }),
  ]);
}

/** Appends an event for one webhook only, whatever it has subscribed to; locks as `appendEvent` does. */
export async function appendTestEvent(
  tx: Tx,
  event: NewEvent,
  webhookId: string,
): Promise<{ eventId: string; deliveryId: string }> {
  const { teamId } = event;
  const sequence = await nextSequence(tx, teamId);
  const [eventId, [deliveryId]] = await Promise.all([
    insertEvent(tx, event, sequence),
    addDeliveries(tx, { teamId, webhookIds: [webhookId], sequence, origin: 'test' }),
  ]);
  return { eventId, deliveryId: deliveryId as string };
}

// Runs after the team's row is locked, so that every subscription made before the event was numbered is found.
const SUBSCRIBED = `
  select id from webhook
  where team_id = $1 and coalesce(workflow_id, '') in ($2, '') and state <> 'deleted'
    and (strpos(fires_for, $3) > 0 or strpos(fires_for, '|*|') > 0)
  order by id`;

/**
 * The number after the team's newest event, which is looked up. A counter in the team's row would leave a dead row with
 * every event, and while somebody holds a transaction open, everybody who locks the row would read them all; a lock
 * leaves none. `last_sequence` is only where the team started in this database: a copy may be ahead of its events.
 */
function nextSequence(tx: Tx, teamId: string): Promise<number> {
  const before = tx.sequences.get(teamId) ?? newestLocked(tx, teamId);
  const next = before.then((sequence) => sequence + 1);
  tx.sequences.set(teamId, next);
  return next;
}

/** Two statements, because the second must see everything that was committed before the row was locked. */
async function newestLocked(tx: Tx, teamId: string): Promise<number> {
  const [team, newest] = await Promise.all([
    tx.db.get<{ sequence: number }>(
      'select last_sequence as sequence from team where id = $1 for no key update',
      teamId,
    ),
    tx.db.get<{ sequence: number }>(NEWEST, teamId),
  ]);
  if (team === undefined) throw new Error(`The team ${teamId} of an event does not exist`);
  return Math.max(team.sequence, newest?.sequence ?? 0);
}

const NEWEST = 'select sequence from event where team_id = $1 order by sequence desc limit 1';

/** Returns the event's id. */
async function insertEvent(tx: Tx, event: NewEvent, sequence: number): Promise<string> {
  const id = newId('evt', tx.now);
  await tx.db.run(
    `insert into event (team_id, sequence, id, type, workflow_id, job_id, body, created_at, trace)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    event.teamId,
    sequence,
    id,
    event.type,
    event.workflowId,
    event.jobId,
    eventBody({ ...event, id, at: tx.now, sequence }),
    tx.now,
    event.trace ?? null,
  );
  return id;
}

/** Returns the ids of the deliveries, in the order of the webhooks. */
async function addDeliveries(
  tx: Tx,
  input: { teamId: string; webhookIds: readonly string[]; sequence: number; origin: DeliveryOrigin },
): Promise<string[]> {
  const { teamId, webhookIds, sequence, origin } = input;
  if (webhookIds.length === 0) return [];
  const ids = webhookIds.map(() => newId('dlv', tx.now));
  await tx.db.run(
    `insert into delivery (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin)
     select $1, made.id, made.webhook_id, $2, 'waiting', $3, $3, $4
     from unnest($5::text[], $6::text[]) as made (id, webhook_id)`,
    teamId,
    sequence,
    tx.now,
    origin,
    ids,
    webhookIds,
  );
  for (const webhookId of webhookIds) touchLane(tx, teamId, webhookId);
  return ids;
}

export const EVENT = `
  select team_id as "teamId", id, sequence, type, workflow_id as "workflowId", job_id as "jobId", body,
         created_at as "createdAt"
  from event`;

export function list(
  view: View,
  { teamId, afterSequence, limit }: { teamId: string; afterSequence: number; limit: number },
): Promise<StoredEvent[]> {
  return view.db.all<StoredEvent>(
    `${EVENT} where team_id = $1 and sequence > $2 order by sequence limit $3`,
    teamId,
    afterSequence,
    limit,
  );
}

export function get(
  view: View,
  { teamId, id }: { teamId: string; id: string },
): Promise<StoredEvent | undefined> {
  return view.db.get<StoredEvent>(`${EVENT} where team_id = $1 and id = $2`, teamId, id);
}

/** How many of the newest events are searched for one of a type: types have no index. */
const LOOKED_THROUGH = 1_000;

export function latest(
  view: View,
  { teamId, type }: { teamId: string; type: EventType },
): Promise<StoredEvent | undefined> {
  return view.db.get<StoredEvent>(
    `select * from (${EVENT} where team_id = $1 order by sequence desc limit $2) as last
     where type = $3 order by sequence desc limit 1`,
    teamId,
    LOOKED_THROUGH,
    type,
  );
}

export async function newest(view: View, { teamId }: { teamId: string }): Promise<number> {
  const team = await view.db.get<{ sequence: number }>(
    `select greatest(last_sequence, (${NEWEST})) as sequence from team where id = $1`,
    teamId,
  );
  return team?.sequence ?? 0;
}
