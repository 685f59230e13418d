/** Reads deliveries and their attempts. `settle.ts` stores the results of attempts, `lanes.ts` finds due deliveries. */

import {
  type Attempt,
  DELIVERY_STATES,
  type DeliveryOrigin,
  type DeliveryState,
} from '../../../model/delivery.ts';
import type { EventType } from '../../../model/event.ts';
import type { InTeam } from '../../rows.ts';
import { Part } from '../../sql.ts';
import type { View } from '../../transaction.ts';

/** Selects deliveries of a webhook by their creation time, in epoch milliseconds. Both bounds are inclusive. */
export interface DeliveryFilter {
  teamId: string;
  webhookId: string;
  states?: readonly DeliveryState[];
  since?: number;
  until?: number;
}

export interface DeliverySummary {
  id: string;
  webhookId: string;
  /** Name and URL of the webhook; null if the webhook has no name, or was removed permanently. */
  webhookName: string | null;
  webhookUrl: string | null;
  /** The workflow of the event; null if the event is about the team. */
  workflowId: string | null;
  eventId: string;
  /** The id of a message of its own, about records whose cooldown has ended; null: the id of the event is sent. */
  messageId: string | null;
  eventType: EventType;
  origin: DeliveryOrigin;
  state: DeliveryState;
  attempt: number;
  nextAt: number | null;
  createdAt: number;
  /** The last attempt, without the endpoint's response body and headers. */
  last: { outcome: Attempt['outcome']; status: number | null; error: string | null; at: number } | null;
}

/** A position among the deliveries of a webhook, oldest first. */
export interface HistoryPlace {
  createdAt: number;
  id: string;
}

/** Columns of a delivery's last attempt. They are null if the delivery has not been attempted. */
export interface LastAttempt {
  outcome: Attempt['outcome'] | null;
  status: number | null;
  error: string | null;
  at: number;
}

export type SummaryRow = Omit<DeliverySummary, 'last'> & LastAttempt;

export const COLUMNS = new Part(`
  delivery.id, delivery.webhook_id as "webhookId", webhook.name as "webhookName", webhook.url as "webhookUrl",
  event.workflow_id as "workflowId", event.id as "eventId",
  delivery.message_id as "messageId", event.type as "eventType", delivery.origin, delivery.state, delivery.attempt, delivery.next_at as "nextAt",
  delivery.created_at as "createdAt", attempt.outcome, attempt.status, attempt.error, attempt.started_at as at`);
export const JOINS = `
  join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
  left join attempt on attempt.team_id = delivery.team_id and attempt.delivery_id = delivery.id
                   and attempt.number = delivery.attempt
  left join webhook on webhook.team_id = delivery.team_id and webhook.id = delivery.webhook_id`;

/** Returns a delivery with the body that it sends, the body of its event, and its attempts, oldest first. */
export async function get(
  view: View,
  { teamId, id }: InTeam,
): Promise<(DeliverySummary & { body: string; eventBody: string; attempts: Attempt[] }) | undefined> {
  const found = await view.db.get<SummaryRow & { ownBody: string | null; eventBody: string }>(
    `select ${COLUMNS}, delivery.body as "ownBody", event.body as "eventBody" from delivery ${JOINS}
     where delivery.team_id = $1 and delivery.id = $2`,
    teamId,
    id,
  );
  if (found === undefined) return undefined;
  // Attempts stored after the delivery's row was read are left out, because they would contradict the row's `nextAt`.
  const attempts = await view.db.all<Attempt & { details: string | null }>`
    select started_at as "startedAt", duration_ms as "durationMs", outcome, status, error, response, details
    from attempt where team_id = ${teamId} and delivery_id = ${id} and number <= ${found.attempt}
    order by number`;
  const { ownBody, ...row } = found;
  return {
    ...toSummary(row),
    body: ownBody ?? row.eventBody,
    attempts: attempts.map((attempt) => ({
      ...attempt,
      details: attempt.details === null ? null : JSON.parse(attempt.details),
    })),
  };
}

/**
 * Returns SQL with one index seek per state, so that deliveries in a rare state are found quickly among many others.
 * `$1` and `$2` are the team and the webhook.
 *
 * @param page.columns columns of `delivery`, starting with `created_at` and `id`, by which the rows are ordered
 */
export function ofStates(
  states: readonly DeliveryState[],
  page: { columns: string; where: string; order: 'asc' | 'desc'; limit: string },
): string {
  const { columns, where, order, limit } = page;
  const inOrder = `order by 1 ${order}, 2 ${order} limit ${limit}`;
  const ofEach = [...new Set(states)].map(
    (state) => `select * from (
      select ${columns} from delivery /* use delivery_history */
      where team_id = $1 and webhook_id = $2 and (state || '') = '${state}' and ${where} ${inOrder}) of_state`,
  );
  return `${ofEach.join(' union all ')} ${inOrder}`;
}

const page = (states: readonly DeliveryState[]) => `
  select ${COLUMNS} from (${ofStates(states, {
    columns: 'created_at, id',
    where: 'created_at >= $3 and (created_at, id) < ($4, $5)',
    order: 'desc',
    limit: '$6',
  })}) page
  join delivery on delivery.team_id = $1 and delivery.id = page.id ${JOINS}
  order by page.created_at desc, page.id desc`;

/** Lists deliveries of one webhook that are older than the delivery `before`, newest first. */
export async function list(
  view: View,
  input: DeliveryFilter & { before?: string; limit: number },
): Promise<DeliverySummary[]> {
  const { teamId, webhookId, states = DELIVERY_STATES, since = 0, limit, before } = input;
  let end: HistoryPlace = { createdAt: (input.until ?? Number.MAX_SAFE_INTEGER - 1) + 1, id: '' };
  if (before !== undefined) {
    const last = await view.db.get<HistoryPlace>`
      select created_at as "createdAt", id from delivery
      where team_id = ${teamId} and id = ${before} and webhook_id = ${webhookId}`;
    if (last === undefined) return [];
    if (last.createdAt < end.createdAt) end = last;
  }
  const rows = await view.db.all<SummaryRow>(
    page(states),
    teamId,
    webhookId,
    since,
    end.createdAt,
    end.id,
    limit,
  );
  return rows.map((row) => toSummary(row));
}

/** Moves the columns of the last attempt into `last`. */
export function toSummary<Row extends LastAttempt>({ outcome, status, error, at, ...rest }: Row) {
  return { ...rest, last: outcome === null ? null : { outcome, status, error, at } };
}

/** Lists deliveries of one event to any webhook that are older than the delivery `before`, newest first. */
export async function ofEvent(
  view: View,
  { teamId, sequence, before, limit }: { teamId: string; sequence: number; before?: string; limit: number },
): Promise<DeliverySummary[]> {
  const rows = await view.db.all<SummaryRow>(
    `select ${COLUMNS} from delivery /* use delivery_event */ ${JOINS}
     where delivery.team_id = $1 and delivery.event_sequence = $2 and delivery.id < $3
     order by delivery.id desc limit $4`,
    teamId,
    sequence,
    before ?? 'e',
    limit,
  );
  return rows.map((row) => toSummary(row));
}
