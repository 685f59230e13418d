/**
 * Records the results of attempts: a batch at a time, in a few statements however many webhooks are concerned.
 *
 * A success is true whoever reports it, and is always recorded. Any other result counts only if no other node has taken
 * the lane since, and if it is the delivery's next attempt: reports of a node that was away for a while are stale. Rows
 * are locked in one order, webhooks before deliveries, so that two batches do not deadlock.
 */
import { withoutAnswer } from '../../model/delivery.ts';
import { cancelWaiting, markRemoved } from '../operations/webhooks.ts';
import type { Tx } from '../sql.ts';
import type { Settlement } from '../webhook-operations.ts';

/** Returns whether deliveries still wait for webhooks that this has removed; `cancel-removed.ts` cancels them. */
export async function settle(
  tx: Tx,
  { settlements }: { settlements: readonly Settlement[] },
): Promise<{ more: boolean }> {
  const byWebhook = settlements.toSorted((a, b) => compare(webhookOf(a), webhookOf(b)));
  for (const settlement of byWebhook) await noteHealth(tx, settlement);
  // An endpoint that answers 410 is gone, even if the delivery was canceled or given up meanwhile.
  const gone: Settlement[] = [];
  for (const settlement of byWebhook) {
    if (settlement.next.state !== 'canceled' || !(await isHolder(tx, settlement))) continue;
    if (await markRemoved(tx, { teamId: settlement.teamId, id: settlement.webhookId })) gone.push(settlement);
  }
  const kept = await withoutErased(tx, settlements);
  for (const round of rounds(kept)) await settleRound(tx, round);
  const left = await Promise.all(
    gone.map(({ teamId, webhookId }) => cancelWaiting(tx, { teamId, id: webhookId })),
  );
  return { more: left.includes(true) };
}

const IS_HOLDER =
  'not exists (select 1 from lane where lane.team_id = $1 and lane.webhook_id = $2 and lane.epoch > $3)';

async function isHolder(tx: Tx, { teamId, webhookId, epoch }: Settlement): Promise<boolean> {
  const row = await tx.db.get<{ holds: boolean }>(`select ${IS_HOLDER} as holds`, teamId, webhookId, epoch);
  return row?.holds === true;
}

/** Updates the health of the webhook, which an attempt shows even if its delivery was settled otherwise. */
async function noteHealth(tx: Tx, { teamId, webhookId, epoch, health, breaker }: Settlement): Promise<void> {
  if (health === 'failing') {
    await tx.db.run(
      `update webhook set failing_since = $4
       where team_id = $1 and id = $2 and state <> 'deleted' and failing_since is null and ${IS_HOLDER}`,
      teamId,
      webhookId,
      epoch,
      tx.now,
    );
  }
  if (health === 'well') {
    await tx.db.run(
      `update webhook set failing_since = null, last_success_at = $3
       where team_id = $1 and id = $2 and state <> 'deleted'`,
      teamId,
      webhookId,
      tx.now,
    );
  }
  if (breaker !== undefined) {
    await tx.db.run(
      `update webhook set breaker = $4
       where team_id = $1 and id = $2 and state <> 'deleted' and ${IS_HOLDER}`,
      teamId,
      webhookId,
      epoch,
      breaker === null ? null : JSON.stringify(breaker),
    );
  }
}

/** Drops the response when an erasure has rewritten events of the team since the delivery was loaded. */
async function withoutErased(tx: Tx, settlements: readonly Settlement[]): Promise<readonly Settlement[]> {
  const teamIds = [...new Set(settlements.map(({ teamId }) => teamId))];
  const teams = await tx.db.all<{ id: string; rewrites: number }>(
    'select id, rewrites from team where id = any($1::text[])',
    teamIds,
  );
  const now = new Map(teams.map(({ id, rewrites }) => [id, rewrites]));
  return settlements.map((settlement) =>
    settlement.rewrites === (now.get(settlement.teamId) ?? 0)
      ? settlement
      : { ...settlement, log: withoutAnswer(settlement.log) },
  );
}

/** Splits a batch into parts in which every delivery occurs once; nearly always one part. */
function rounds(settlements: readonly Settlement[]): Settlement[][] {
  const parts: Settlement[][] = [];
  const seen = new Map<string, number>();
  for (const settlement of settlements) {
    const place = seen.get(settlement.deliveryId) ?? 0;
    seen.set(settlement.deliveryId, place + 1);
    parts[place] ??= [];
    parts[place].push(settlement);
  }
  return parts;
}

// A failed delivery goes behind new ones, into the class of retries; a replayed one stays behind both. A success that
// comes late, under the number of another attempt, replaces the failure that was recorded there.
const SETTLE = `
  with given as materialized (
    select * from unnest(
      $1::text[], $2::text[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::bigint[],
      $8::bigint[], $9::integer[], $10::text[], $11::integer[], $12::text[], $13::text[], $14::text[]
    ) as given (team_id, delivery_id, webhook_id, epoch, attempt, state, next_at,
                started_at, duration_ms, outcome, status, error, response, details)
  ),
  settled as (
    update delivery set
      state = given.state, next_at = given.next_at,
      attempt = case when given.state = 'delivered' then greatest(delivery.attempt, given.attempt) else given.attempt end,
      class = case when given.state = 'delivered' then delivery.class else greatest(delivery.class, 1) end
    from given
    where delivery.team_id = given.team_id and delivery.id = given.delivery_id
      and case when given.state = 'delivered' then delivery.state <> 'delivered'
          else delivery.state = 'waiting' and delivery.attempt = given.attempt - 1
            and (select true from lane
                 where lane.team_id = given.team_id and lane.webhook_id = given.webhook_id
                   and lane.epoch > given.epoch) is null
          end
    returning given.team_id, given.delivery_id
  )
  insert into attempt
    (team_id, delivery_id, number, started_at, duration_ms, outcome, status, error, response, details)
  select team_id, delivery_id, attempt, started_at, duration_ms, outcome, status, error, response, details
  from given join settled using (team_id, delivery_id)
  on conflict (team_id, delivery_id, number) do update set
    started_at = excluded.started_at, duration_ms = excluded.duration_ms, outcome = excluded.outcome,
    status = excluded.status, error = excluded.error, response = excluded.response, details = excluded.details`;

async function settleRound(tx: Tx, settlements: Settlement[]): Promise<void> {
  const rows = settlements.toSorted((a, b) => compare(a.deliveryId, b.deliveryId));
  const column = <Value>(of: (settlement: Settlement) => Value): Value[] => rows.map(of);
  await tx.db.run(
    SETTLE,
    column(({ teamId }) => teamId),
    column(({ deliveryId }) => deliveryId),
    column(({ webhookId }) => webhookId),
    column(({ epoch }) => epoch),
    column(({ attempt }) => attempt),
    column(({ next }) => next.state),
    column(({ next }) => (next.state === 'waiting' ? next.nextAt : null)),
    column(({ log }) => log.startedAt),
    column(({ log }) => log.durationMs),
    column(({ log }) => log.outcome),
    column(({ log }) => log.status),
    column(({ log }) => log.error),
    column(({ log }) => log.response),
    column(({ log }) => (log.details === null ? null : JSON.stringify(log.details))),
  );
}

function webhookOf({ teamId, webhookId }: Settlement): string {
  return `${teamId} ${webhookId}`;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
