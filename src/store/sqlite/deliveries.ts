/** Deliveries: what became of them, and what they are. `lanes.ts` says which are due. */
import type { Attempt } from '../../model/delivery.ts';
import { DELIVERY_STATES } from '../../model/delivery.ts';
import type { DeliveryFilter, DeliverySummary } from '../webhook-operations.ts';
import { WAITING_LANES } from './lanes.ts';
import type { Tx, View } from './transaction.ts';
import { cancelWaiting } from './webhooks.ts';

const REMOVED_LANES = `
  ${WAITING_LANES}
  select lane.team_id as teamId, lane.webhook_id as webhookId
  from lane
  join webhook on webhook.team_id = lane.team_id and webhook.id = lane.webhook_id
  where webhook.state = 'deleted' limit ?`;

/** Cancels what still waits for removed webhooks, as far as one transaction may. */
export function cancelRemoved(tx: Tx): void {
  // Each lane has at least one delivery, so no more of them can be dealt with.
  const removed = tx.db.all<{ teamId: string; webhookId: string }>(REMOVED_LANES, tx.cancelable);
  for (const { teamId, webhookId } of removed) cancelWaiting(tx, teamId, webhookId);
}

export function get(
  view: View,
  { teamId, id }: { teamId: string; id: string },
): (DeliverySummary & { body: string; attempts: Attempt[] }) | undefined {
  const found = summary(view, teamId, id);
  if (found === undefined) return undefined;
  const { body } = view.db.get<{ body: string }>(
    'select body from event where team_id = ? and id = ?',
    teamId,
    found.eventId,
  ) as { body: string };
  // An attempt that was settled since the row was read would stand beside the time that it was due at.
  const attempts = view.db
    .all<Attempt & { details: string | null }>(
      `select started_at as startedAt, duration_ms as durationMs, outcome, status, error, response, details
       from attempt where team_id = ? and delivery_id = ? and number <= ? order by number`,
      teamId,
      id,
      found.attempt,
    )
    .map((attempt) => ({
      ...attempt,
      details: attempt.details === null ? null : JSON.parse(attempt.details),
    }));
  return { ...found, body, attempts };
}

export function list(
  view: View,
  input: DeliveryFilter & { before?: string; limit: number },
): DeliverySummary[] {
  const { teamId, webhookId, states = DELIVERY_STATES, since = 0, limit, before } = input;
  let end: Place = { createdAt: (input.until ?? Number.MAX_SAFE_INTEGER - 1) + 1, id: '' };
  if (before !== undefined) {
    const last = placeOf(view, { teamId, webhookId, id: before });
    if (last === undefined) return [];
    if (last.createdAt < end.createdAt) end = last;
  }
  // One seek for each state, so that those which are rare are found among those which are many.
  const places = states.flatMap((state) =>
    view.db.all<Place>(BACKWARDS, teamId, webhookId, state, since, end.createdAt, end.id, limit),
  );
  places.sort((a, b) => -byAge(a, b));
  return places.slice(0, limit).map(({ id }) => summary(view, teamId, id) as DeliverySummary);
}

const BACKWARDS = `
  select created_at as createdAt, id from delivery indexed by delivery_history
  where team_id = ? and webhook_id = ? and state = ? and created_at >= ? and (created_at, id) < (?, ?)
  order by created_at desc, id desc limit ?`;

/** Where a delivery stands in the history of its webhook. */
export interface Place {
  createdAt: number;
  id: string;
}

/** The oldest first. */
export function byAge(a: Place, b: Place): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

function placeOf(view: View, at: { teamId: string; webhookId: string; id: string }): Place | undefined {
  return view.db.get<Place>(
    'select created_at as createdAt, id from delivery where team_id = ? and id = ? and webhook_id = ?',
    at.teamId,
    at.id,
    at.webhookId,
  );
}

interface SummaryRow extends Omit<DeliverySummary, 'last'> {
  outcome: Attempt['outcome'] | null;
  status: number | null;
  error: string | null;
  at: number;
}

export function summary(view: View, teamId: string, id: string): DeliverySummary | undefined {
  const row = view.db.get<SummaryRow>(
    `select delivery.id, delivery.webhook_id as webhookId, event.id as eventId, event.type as eventType,
            delivery.origin, delivery.state, delivery.attempt, delivery.next_at as nextAt,
            delivery.created_at as createdAt, attempt.outcome, attempt.status, attempt.error,
            attempt.started_at as at
     from delivery
     join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
     left join attempt on attempt.team_id = delivery.team_id and attempt.delivery_id = delivery.id
                      and attempt.number = delivery.attempt
     where delivery.team_id = ? and delivery.id = ?`,
    teamId,
    id,
  );
  if (row === undefined) return undefined;
  const { outcome, status, error, at, ...rest } = row;
  return { ...rest, last: outcome === null ? null : { outcome, status, error, at } };
}
