/**
 * Stores the results of attempts, a batch at a time.
 *
 * A success always counts, whichever node reports it. Any other result counts only if no other node has taken over the
 * lane and if the attempt is the delivery's next one, because a node that was away reports outdated results. All
 * batches lock webhooks before deliveries, so that two batches do not deadlock.
 */

import { type Attempt, type NextStep, withoutResponse } from '../../model/delivery.ts';
import { failingData } from '../../model/event.ts';
import { type Breaker, hasJustOpened } from '../../model/lane.ts';
import { toldUrl } from '../../model/messages/destination.ts';
import { storedRule } from '../../model/rule.ts';
import type { InTeam } from '../rows.ts';
import { both } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { appendEvent } from './events.ts';
import { cancelWaiting, markRemoved } from './webhooks.ts';

/** The outcome of one attempt of a delivery. */
export interface Settlement {
  teamId: string;
  deliveryId: string;
  webhookId: string;
  epoch: number;
  attempt: number;
  /**
   * The value of `DueDelivery.rewrites`. If the team's events have been rewritten since, the endpoint's response is not
   * stored.
   */
  rewrites: number;
  log: Attempt;
  next: NextStep;
  /** Set if the attempt changes the endpoint's health: the endpoint has started to fail, or works again. */
  health: 'failing' | 'well' | null;
  /** The new state of the circuit breaker; undefined if the state has not changed. */
  breaker?: Breaker | null | undefined;
}

/**
 * A settlement in the form in which it is sent to SQLite's writer thread. It is a flat list, because sending one takes
 * 0.3 µs; sending nested objects takes 2.7 µs.
 */
export type SettlementRow = [
  teamId: string,
  deliveryId: string,
  webhookId: string,
  epoch: number,
  attempt: number,
  rewrites: number,
  state: Settlement['next']['state'],
  nextAt: number | null,
  health: Settlement['health'],
  /** JSON; undefined if unchanged. */
  breaker: string | null | undefined,
  startedAt: number,
  durationMs: number,
  outcome: string,
  status: number | null,
  error: string | null,
  response: string | null,
  details: string | null,
];

export function settlementRow(settlement: Settlement): SettlementRow {
  const { teamId, deliveryId, webhookId, epoch, attempt, rewrites, next, health, breaker, log } = settlement;
  return [
    teamId,
    deliveryId,
    webhookId,
    epoch,
    attempt,
    rewrites,
    next.state,
    next.state === 'waiting' ? next.nextAt : null,
    health,
    breaker == null ? breaker : JSON.stringify(breaker),
    log.startedAt,
    log.durationMs,
    log.outcome,
    log.status,
    log.error,
    log.response,
    jsonOf(log.details),
  ];
}

/**
 * Stores results. Webhooks whose endpoint is gone are removed. `more` means that deliveries to these webhooks may still
 * be waiting, which `cancelRemoved` must cancel. Event: `webhook_failing`, if a circuit breaker has opened for the first
 * time since the last success, to the other webhooks subscribed to the workflow or the team. With `ofOne`, all rows are of one team, because the database is
 * distributed.
 */
export async function settle(
  tx: Tx,
  { rows, ofOne = false }: { rows: readonly SettlementRow[]; ofOne?: boolean },
): Promise<{ more: boolean }> {
  const ofWebhooks = rows
    .filter(
      ([, , , , , , state, , health, breaker]) =>
        health !== null || breaker !== undefined || state === 'canceled',
    )
    .sort((a, b) => compare(a[0], b[0]) || compare(a[2], b[2]));
  // All updates are sent together and run in this order, so that every batch locks webhooks in the same order.
  const noted = Promise.all(ofWebhooks.map((row) => noteHealth(tx, row)));
  const [kept, opened] = await Promise.all([withoutErased(tx, rows), noted]);
  for (const one of opened) if (one !== undefined) reportFailing(tx, one, kept[rows.indexOf(one.row)]);
  // An endpoint that returns 410 is gone. This holds even if the delivery was canceled or has expired in the meantime.
  const gone: InTeam[] = [];
  for (const [teamId, , id, epoch, , , state] of ofWebhooks) {
    if (state !== 'canceled' || !(await isHolder(tx, { teamId, id, epoch }))) continue;
    if (await markRemoved(tx, { teamId, id })) gone.push({ teamId, id });
  }
  const settleAll = tx.db.pick({ sqlite: settleEach, postgres: settleTogether });
  await tx.db.last(settleAll(tx, kept, ofOne));
  return { more: await cancelWaiting(tx, gone) };
}

// On SQLite there are no leases, because all lanes belong to the only process.
const IS_HOLDER = {
  sqlite: '$3 is not null',
  postgres:
    'not exists (select 1 from lane where lane.team_id = $1 and lane.webhook_id = $2 and lane.epoch > $3)',
};
const HOLDS = both((pick) => `select ${pick(IS_HOLDER)} as holds`);

async function isHolder(
  tx: Tx,
  { teamId, id, epoch }: { teamId: string; id: string; epoch: number },
): Promise<boolean> {
  const row = await tx.db.get<{ holds: boolean }>(HOLDS, teamId, id, epoch);
  return Boolean(row?.holds);
}

const BEGIN_TO_FAIL = both(
  (pick) => `
  update webhook set failing_since = $4
  where team_id = $1 and id = $2 and state <> 'deleted' and failing_since is null and ${pick(IS_HOLDER)}`,
);
const SUCCEED = `
  update webhook set failing_since = null, last_success_at = $3
  where team_id = $1 and id = $2 and state <> 'deleted'`;
const NOTE_BREAKER = both(
  (pick) => `
  update webhook set breaker = $4
  where team_id = $1 and id = $2 and state <> 'deleted' and ${pick(IS_HOLDER)}`,
);

/** A webhook whose circuit breaker opens. */
interface Opening {
  url: string;
  name: string | null;
  workflowId: string | null;
  failingSince: number | null;
  /** As JSON; null for none. */
  rule: string | null;
  /** The stored state until now, as JSON. */
  before: string | null;
}

// The webhook as it is before `NOTE_BREAKER`. A paused webhook has its own event.
const OPENING = both(
  (pick) => `
  select url, name, workflow_id as "workflowId", failing_since as "failingSince", rule, breaker as before
  from webhook
  where team_id = $1 and id = $2 and state = 'active' and ${pick(IS_HOLDER)}`,
);

/**
 * Updates the health of a webhook. An attempt shows the endpoint's health even if another result was stored for its
 * delivery. All statements are sent without waiting for each other, so that of several attempts the last one counts.
 *
 * @returns the webhook, if its breaker has opened for the first time since its last success
 */
async function noteHealth(
  tx: Tx,
  row: SettlementRow,
): Promise<{ row: SettlementRow; opened: Breaker; webhook: Opening } | undefined> {
  const [teamId, , webhookId, epoch, , , , , health, breaker] = row;
  const sent: Promise<unknown>[] = [];
  if (health === 'failing') sent.push(tx.db.run(BEGIN_TO_FAIL, teamId, webhookId, epoch, tx.now));
  if (health === 'well') sent.push(tx.db.run(SUCCEED, teamId, webhookId, tx.now));
  const opened: Breaker | null = breaker?.startsWith(OPEN) ? JSON.parse(breaker) : null;
  const asking = opened === null ? undefined : tx.db.get<Opening>(OPENING, teamId, webhookId, epoch);
  if (breaker !== undefined) sent.push(tx.db.run(NOTE_BREAKER, teamId, webhookId, epoch, breaker));
  const [webhook] = await Promise.all([asking, ...sent]);
  if (webhook === undefined) return undefined;
  const before: Breaker | null = webhook.before === null ? null : JSON.parse(webhook.before);
  return hasJustOpened(opened, before) ? { row, opened, webhook } : undefined;
}

/** How the JSON of an open breaker starts: only then is the webhook read. */
const OPEN = '{"state":"open"';

/** @param kept the row, without a response that was erased */
function reportFailing(
  tx: Tx,
  { row, opened, webhook }: { row: SettlementRow; opened: Breaker; webhook: Opening },
  kept: SettlementRow = row,
): void {
  const [teamId, , id] = row;
  const { name, url, workflowId, failingSince, rule } = webhook;
  const { failures, since, until } = opened;
  const data = failingData({
    id,
    name,
    url: toldUrl(url, rule === null ? null : storedRule(rule)),
    since: failingSince ?? since,
    failures,
    lastError: kept.at(-3) as string | null,
    retriesAt: until,
  });
  appendEvent(
    tx,
    { teamId, type: 'webhook_failing', workflowId, jobId: null, finishedAt: null, data },
    { exceptWebhookId: id },
  );
}

/** Drops the responses of attempts if an erasure has rewritten events of the team since the delivery was loaded. */
async function withoutErased(tx: Tx, rows: readonly SettlementRow[]): Promise<readonly SettlementRow[]> {
  const teams = await tx.db.all<{ id: string; rewrites: number }>`
    select id, rewrites from team where id = any(${[...new Set(rows.map(([teamId]) => teamId))]}::text[])`;
  const now = new Map(teams.map(({ id, rewrites }) => [id, rewrites]));
  return rows.map((row) => {
    const [teamId, , , , , rewrites, , , , , , , , status, error, response, details] = row;
    if (rewrites === (now.get(teamId) ?? 0)) return row;
    const log = withoutResponse({
      status,
      error,
      response,
      details: details === null ? null : JSON.parse(details),
    });
    return row.with(-3, log.error).with(-2, log.response).with(-1, jsonOf(log.details)) as SettlementRow;
  });
}

/** Runs one statement per delivery and one per attempt, which is fastest where statements need no round trip. */
async function settleEach(tx: Tx, rows: readonly SettlementRow[]): Promise<void> {
  for (const [teamId, deliveryId, , , attempt, , state, nextAt, , , ...log] of rows) {
    const settled =
      state === 'delivered'
        ? tx.db.run(DELIVERED, teamId, deliveryId, attempt)
        : tx.db.run(NOT_DELIVERED, teamId, deliveryId, attempt, state, nextAt);
    if ((await settled) > 0) await tx.db.run(NOTE_ATTEMPT, teamId, deliveryId, attempt, ...log);
  }
}

// A failed delivery moves to the class of retries, which come after new deliveries. A failed replay stays in the class
// of replays, which come after both. If a late success has the number of an attempt that was stored as failed, the
// success replaces the stored failure.
const DELIVERED = `
  update delivery set state = 'delivered', next_at = null, attempt = max(attempt, $3)
  where team_id = $1 and id = $2 and state <> 'delivered'`;
const NOT_DELIVERED = `
  update delivery set state = $4, next_at = $5, attempt = $3, class = max(class, 1)
  where team_id = $1 and id = $2 and attempt = $3 - 1 and state = 'waiting'`;
const NOTE_ATTEMPT = `
  insert or replace into attempt
    (team_id, delivery_id, number, started_at, duration_ms, outcome, status, error, response, details)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;

/** One statement for all rows. */
async function settleTogether(tx: Tx, rows: readonly SettlementRow[], ofOne: boolean): Promise<void> {
  const { lock, settle } = ofOne ? OF_ONE_TEAM : OF_ANY_TEAM;
  const settled = rounds(rows).map((part) => {
    part.sort((a, b) => compare(a[1], b[1]));
    const column = (at: number) => part.map((row) => row[at] as string | number | null);
    const team = ofOne ? (part[0]?.[0] ?? '') : column(0);
    const places = [1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 14, 15, 16];
    return Promise.all([tx.db.lock(lock, team, column(1)), tx.db.run(settle, team, ...places.map(column))]);
  });
  await Promise.all(settled);
}

/** Splits a batch into parts in which every delivery occurs only once. Nearly every batch is a single part. */
function rounds(rows: readonly SettlementRow[]): SettlementRow[][] {
  const parts: SettlementRow[][] = [];
  const seen = new Map<string, number>();
  for (const row of rows) {
    const place = seen.get(row[1]) ?? 0;
    seen.set(row[1], place + 1);
    parts[place] ??= [];
    parts[place].push(row);
  }
  return parts;
}

/**
 * The statements that lock and settle deliveries. `$1` lists the team of each row. With `ofOne`, `$1` is the team of all
 * rows, so that a distributed database runs the statements on one node; elsewhere, a statement for each of 50 teams
 * takes twice as much time of the database.
 */
const statements = ({ ofOne }: { ofOne: boolean }) => {
  const [teams, teamId] = ofOne ? ['', ''] : ['$1::text[], ', 'team_id, '];
  const team = ofOne ? '$1' : 'given.team_id';
  // Deliveries are found by an order that only the primary key has: the statements are planned once, perhaps while the
  // table is empty and each index seems as good as the others. The nodes of a distributed database plan each time.
  const place = `
    cross join lateral (
      select ctid as place from delivery
      where (delivery.team_id, delivery.id) >= (given.team_id, given.delivery_id)
        and (delivery.team_id, delivery.id) <= (given.team_id, given.delivery_id)
      order by delivery.team_id, delivery.id limit 1`;
  return {
    // This is a separate statement, so that the next one sees everything that was committed before the rows were locked.
    lock: ofOne
      ? 'select 1 from delivery where team_id = $1 and id = any($2::text[]) order by id for no key update'
      : `select 1 from unnest($1::text[], $2::text[]) as given (team_id, delivery_id) ${place} for no key update) delivery`,
    settle: `
      with given as materialized (
        select * from unnest(
          ${teams}$2::text[], $3::text[], $4::bigint[], $5::integer[], $6::text[], $7::bigint[],
          $8::bigint[], $9::integer[], $10::text[], $11::integer[], $12::text[], $13::text[], $14::text[]
        ) as given (${teamId}delivery_id, webhook_id, epoch, attempt, state, next_at,
                    started_at, duration_ms, outcome, status, error, response, details)
      ),
      found as materialized (
        select given.*${ofOne ? '' : ', delivery.place'} from given ${ofOne ? '' : `${place}) delivery`}
      ),
      settled as (
        update delivery set
          state = given.state, next_at = given.next_at,
          attempt = case when given.state = 'delivered' then greatest(delivery.attempt, given.attempt) else given.attempt end,
          class = case when given.state = 'delivered' then delivery.class else greatest(delivery.class, 1) end
        from found given
        where ${ofOne ? 'delivery.team_id = $1 and delivery.id = given.delivery_id' : 'delivery.ctid = given.place'}
          and case when given.state = 'delivered' then delivery.state <> 'delivered'
              else delivery.state = 'waiting' and delivery.attempt = given.attempt - 1
                and (select 1 from lane
                     where lane.team_id = ${team} and lane.webhook_id = given.webhook_id
                       and lane.epoch > given.epoch) is null
              end
        returning given.*
      )
      insert into attempt
        (team_id, delivery_id, number, started_at, duration_ms, outcome, status, error, response, details)
      select ${ofOne ? '$1' : 'team_id'}, delivery_id, attempt, started_at, duration_ms, outcome, status, error, response,
             details
      from settled
      on conflict (team_id, delivery_id, number) do update set
        started_at = excluded.started_at, duration_ms = excluded.duration_ms, outcome = excluded.outcome,
        status = excluded.status, error = excluded.error, response = excluded.response, details = excluded.details`,
  };
};
const OF_ONE_TEAM = statements({ ofOne: true });
const OF_ANY_TEAM = statements({ ofOne: false });

const jsonOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value));

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
