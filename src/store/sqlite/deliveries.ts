/** Deliveries: what is due, for whom, and what became of it. */
import type { Attempt, DeliveryState, DueDelivery } from '../../model/delivery.ts';
import type { DueLane, Settlement } from '../store.ts';
import type { Tx, View } from './transaction.ts';
import { cancelWaiting, removeWebhook } from './webhooks.ts';

/**
 * Steps from team to team and from webhook to webhook through the index `delivery_due`, one seek each. The two
 * levels are apart because SQLite seeks only by the first column of a row value that it has just computed.
 */
const WAITING_LANES = `
  with recursive
    waiting_team (team_id) as (
      select min(team_id) from delivery where state = 'waiting'
      union all
      select (select min(d.team_id) from delivery d where d.state = 'waiting' and d.team_id > waiting_team.team_id)
      from waiting_team where team_id is not null
    ),
    lane (team_id, webhook_id) as (
      select team_id,
             (select min(d.webhook_id) from delivery d
              where d.state = 'waiting' and d.team_id = waiting_team.team_id)
      from waiting_team where team_id is not null
      union all
      select team_id,
             (select min(d.webhook_id) from delivery d
              where d.state = 'waiting' and d.team_id = lane.team_id and d.webhook_id > lane.webhook_id)
      from lane where webhook_id is not null
    )`;
const LANES = `
  ${WAITING_LANES}
  select lane.team_id as teamId, lane.webhook_id as webhookId, webhook.url, webhook.secret
  from lane
  join webhook on webhook.team_id = lane.team_id and webhook.id = lane.webhook_id
  where webhook.state = 'active'
    and exists (select 1 from delivery d
                where d.state = 'waiting' and d.team_id = lane.team_id and d.webhook_id = lane.webhook_id
                  and d.next_at <= ?)`;

export function lanes(view: View): DueLane[] {
  return view.db.all<DueLane>(LANES, view.now).map((lane) => ({ ...lane }));
}

export function load(
  view: View,
  { teamId, webhookId, limit }: { teamId: string; webhookId: string; limit: number },
): DueDelivery[] {
  return view.db
    .all<DueDelivery>(
      `select delivery.team_id as teamId, delivery.id, delivery.webhook_id as webhookId, delivery.attempt,
              event.id as eventId, event.type as eventType, event.body
       from delivery
       join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
       where delivery.team_id = ? and delivery.webhook_id = ? and delivery.state = 'waiting' and delivery.next_at <= ?
         and exists (select 1 from webhook where webhook.team_id = delivery.team_id
                     and webhook.id = delivery.webhook_id and webhook.state = 'active')
       order by delivery.next_at, delivery.id limit ?`,
      teamId,
      webhookId,
      view.now,
      limit,
    )
    .map((delivery) => ({ ...delivery }));
}

export function settle(tx: Tx, { settlements }: { settlements: readonly Settlement[] }): void {
  for (const settlement of settlements) {
    if (!settleOne(tx, settlement)) continue;
    logAttempt(tx, settlement);
    if (settlement.next.state === 'canceled') removeWebhook(tx, settlement.teamId, settlement.webhookId);
  }
}

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

/** Answers whether the settlement counts. */
function settleOne(tx: Tx, { teamId, deliveryId, attempt, next }: Settlement): boolean {
  if (next.state === 'delivered') {
    // What has arrived has arrived, whatever was believed of it since.
    const delivered = tx.db.run(
      `update delivery set state = 'delivered', next_at = null, attempt = max(attempt, ?)
       where team_id = ? and id = ? and state <> 'delivered'`,
      attempt,
      teamId,
      deliveryId,
    );
    return delivered > 0;
  }
  const settled = tx.db.run(
    `update delivery set state = ?, next_at = ?, attempt = ?
     where team_id = ? and id = ? and attempt = ? and state = 'waiting'`,
    next.state,
    next.state === 'waiting' ? next.nextAt : null,
    attempt,
    teamId,
    deliveryId,
    attempt - 1,
  );
  return settled > 0;
}

/** A success that comes late, under a number that is taken, replaces the failure that was noted there. */
function logAttempt(tx: Tx, { teamId, deliveryId, attempt, log }: Settlement): void {
  tx.db.run(
    `insert or replace into attempt
       (team_id, delivery_id, number, started_at, duration_ms, outcome, status, error, response)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    teamId,
    deliveryId,
    attempt,
    log.startedAt,
    log.durationMs,
    log.outcome,
    log.status,
    log.error,
    log.response,
  );
}

export function get(
  view: View,
  { teamId, id }: { teamId: string; id: string },
): { state: DeliveryState; webhookId: string; eventId: string; attempts: Attempt[] } | undefined {
  const delivery = view.db.get<{ state: DeliveryState; webhookId: string; eventId: string }>(
    `select delivery.state, delivery.webhook_id as webhookId, event.id as eventId
     from delivery
     join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
     where delivery.team_id = ? and delivery.id = ?`,
    teamId,
    id,
  );
  if (delivery === undefined) return undefined;
  const attempts = view.db
    .all<Attempt>(
      `select started_at as startedAt, duration_ms as durationMs, outcome, status, error, response
       from attempt where team_id = ? and delivery_id = ? order by number`,
      teamId,
      id,
    )
    .map((attempt) => ({ ...attempt }));
  return { ...delivery, attempts };
}

export function list(
  view: View,
  { teamId, webhookId, limit }: { teamId: string; webhookId: string; limit: number },
): { id: string; eventId: string; state: DeliveryState; attempt: number; nextAt: number | null }[] {
  return view.db
    .all<{ id: string; eventId: string; state: DeliveryState; attempt: number; nextAt: number | null }>(
      `select delivery.id, event.id as eventId, delivery.state, delivery.attempt, delivery.next_at as nextAt
       from delivery indexed by delivery_webhook
       join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
       where delivery.team_id = ? and delivery.webhook_id = ?
       order by delivery.id desc limit ?`,
      teamId,
      webhookId,
      limit,
    )
    .map((delivery) => ({ ...delivery }));
}
