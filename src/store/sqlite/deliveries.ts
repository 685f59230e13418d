/** Reading deliveries, and canceling those of removed webhooks. `lanes.ts` loads the due ones. */
import { type Attempt, DELIVERY_STATES } from '../../model/delivery.ts';
import type { DeliveryOperations, DeliverySummary } from '../webhook-operations.ts';
import { WAITING_LANES } from './lanes.ts';
import type { Tx, View } from './transaction.ts';
import { cancelWaiting } from './webhooks.ts';

type Input<Name extends keyof DeliveryOperations> = Parameters<DeliveryOperations[Name]>[0];
type Result<Name extends keyof DeliveryOperations> = Awaited<ReturnType<DeliveryOperations[Name]>>;

const REMOVED_LANES = `
  ${WAITING_LANES}
  select lane.team_id as teamId, lane.webhook_id as webhookId
  from lane
  join webhook on webhook.team_id = lane.team_id and webhook.id = lane.webhook_id
  where webhook.state = 'deleted' limit ?3`;

/** Cancels waiting deliveries of removed webhooks, as many as one transaction may. */
export function cancelRemoved(tx: Tx): void {
  // Each lane found has at least one waiting delivery, so there is no use in more lanes than that.
  const removed = tx.db.all<{ teamId: string; webhookId: string }>(REMOVED_LANES, '', '', tx.cancelsLeft);
  for (const { teamId, webhookId } of removed) cancelWaiting(tx, teamId, webhookId);
}

export function get(view: View, { teamId, id }: Input<'get'>): Result<'get'> {
  const found = summary(view, teamId, id);
  if (found === undefined) return undefined;
  const { body } = view.db.get<{ body: string }>(
    'select body from event where team_id = ? and id = ?',
    teamId,
    found.eventId,
  ) as { body: string };
  // Without attempts that were settled after the row was read, which would contradict its `nextAt`.
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

export function list(view: View, input: Input<'list'>): DeliverySummary[] {
  const { teamId, webhookId, states = DELIVERY_STATES, since = 0, limit, before } = input;
  let end: HistoryCursor = { createdAt: (input.until ?? Number.MAX_SAFE_INTEGER - 1) + 1, id: '' };
  if (before !== undefined) {
    const last = placeOf(view, { teamId, webhookId, id: before });
    if (last === undefined) return [];
    if (last.createdAt < end.createdAt) end = last;
  }
  // One seek for each state, so that a rare state is found quickly among many deliveries of another.
  const places = states.flatMap((state) =>
    view.db.all<HistoryCursor>(BACKWARDS, teamId, webhookId, state, since, end.createdAt, end.id, limit),
  );
  places.sort((a, b) => -byAge(a, b));
  return places.slice(0, limit).map(({ id }) => summary(view, teamId, id) as DeliverySummary);
}

const BACKWARDS = `
  select created_at as createdAt, id from delivery indexed by delivery_history
  where team_id = ? and webhook_id = ? and state = ? and created_at >= ? and (created_at, id) < (?, ?)
  order by created_at desc, id desc limit ?`;

/** The position of a delivery in the history of its webhook. */
export interface HistoryCursor {
  createdAt: number;
  id: string;
}

/** Sorts oldest first. */
export function byAge(a: HistoryCursor, b: HistoryCursor): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

function placeOf(
  view: View,
  at: { teamId: string; webhookId: string; id: string },
): HistoryCursor | undefined {
  return view.db.get<HistoryCursor>(
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
