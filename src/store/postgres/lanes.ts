/**
 * Finds lanes (webhooks with due deliveries), loads the due deliveries of a lane, and leases lanes to nodes. One node
 * at a time holds a lane, for as long as the node renews the lease.
 *
 *     free ──take: epoch + 1──▶ held ──keep──▶ held
 *      ▲                         │ └──lease expired, another node takes it: epoch + 1──▶ held by that node
 *      └─────────release─────────┘
 *
 * Each step is one compare-and-set statement, by the database's clock. Rows are locked in the order of their key, so
 * that no two nodes deadlock.
 */

import { DELIVERY_CLASSES, type DueDelivery, LONGEST_WAIT_MS } from '../../model/delivery.ts';
import type { DueLane, HeldLane, LaneHolder } from '../operations/lanes.ts';
import {
  DUE_COLUMNS,
  type DueRow,
  hasDue,
  LANE_COLUMNS,
  LATER,
  type LaneRow,
  lanesOfTeam,
  replayRuns,
  toDue,
  toLane,
} from '../operations/lanes.ts';
import { byTeam } from '../rows.ts';
import type { Store } from '../store.ts';
import type { LaneName, Tx, View } from '../transaction.ts';

/** Minimum size of the index for dead entries to be considered the reason for a slow search. */
const LARGE_INDEX_BYTES = 1_048_576;

/** A lane with due deliveries, and the state of its lease at the time of the search. */
export interface FoundLane extends DueLane {
  nodeId: string | null;
  /** Epoch milliseconds. */
  leaseUntil: number;
}

const COLUMNS = `
  ${LANE_COLUMNS},
  held.node_id as "nodeId", coalesce(held.epoch, 0) as epoch, coalesce(held.lease_until, 0) as "leaseUntil"`;
const IS_FREE = '(held.node_id is null or held.node_id = $3 or held.lease_until <= $2)';
// Excludes lanes that other nodes hold before their deliveries are searched. Leases and webhooks are looked up one by
// one. With joins, the planner might read all of them.
const dueOf = ({ seen, ahead }: { seen: string; ahead: boolean }) => `
  held as materialized (
    select waiting_lane.webhook_id, ${seen} as seen, held.node_id, held.epoch, held.lease_until
    from waiting_lane
    left join lateral (
      select * from lane where lane.team_id = $1 and lane.webhook_id = waiting_lane.webhook_id limit 1
    ) held on true
    where ${IS_FREE}
  )
  select ${COLUMNS} from held
  cross join lateral (
    select * from webhook where webhook.team_id = $1 and webhook.id = held.webhook_id limit 1
  ) webhook
  where ${hasDue({ seen: 'held.seen', ahead }).postgres}`;
const allLanes = (ahead: boolean) => `${lanesOfTeam(`''`).postgres}, ${dueOf({ seen: '0::bigint', ahead })}`;
/** This query is exported so that a test can check its plan. */
export const LANES = allLanes(false);
const LANES_AFRESH = allLanes(true);
const KNOWN_LANES = `
  with waiting_lane as materialized (
    select * from unnest($4::text[], $5::bigint[]) as known (webhook_id, seen)
  ), ${dueOf({ seen: 'waiting_lane.seen', ahead: false })}`;
const LANE = `
  select ${COLUMNS} from webhook
  left join lane held on held.team_id = $1 and held.webhook_id = webhook.id
  where webhook.team_id = $1 and webhook.id = $4 and ${IS_FREE} and ${hasDue({ seen: '$5', ahead: true }).postgres}`;

/** What the next search of a team covers. */
export interface NextSearch {
  /** Whether to include deliveries dated far ahead, which were stored before the clock was set back. */
  afresh: boolean;
  /**
   * Search only these webhooks (default: all). For events up to the sequence number, no new delivery of the webhook is
   * waiting.
   */
  known: ReadonlyMap<string, number> | undefined;
}

/** Finds the lanes of a team with due deliveries that the node holds or could take. */
export async function lanes(
  view: View,
  { teamId, nodeId, afresh, known }: { teamId: string; nodeId: string } & NextSearch,
): Promise<FoundLane[]> {
  const values = [teamId, view.now, nodeId];
  const rows =
    known === undefined
      ? await view.db.all<LaneRow<FoundLane>>(afresh ? LANES_AFRESH : LANES, ...values)
      : await view.db.all<LaneRow<FoundLane>>(KNOWN_LANES, ...values, [...known.keys()], [...known.values()]);
  return rows.map((row) => toLane(row));
}

export async function lane(
  view: View,
  { teamId, webhookId, nodeId, seen }: LaneName & { nodeId: string; seen: number },
): Promise<FoundLane | undefined> {
  const row = await view.db.get<LaneRow<FoundLane>>(LANE, teamId, view.now, nodeId, webhookId, seen);
  return row && toLane(row);
}

/** Whether the index that full searches scan is large enough for dead entries to slow a search down. */
export async function isLarge(view: View): Promise<boolean> {
  const index = await view.db.get<{ bytes: number }>(`select pg_relation_size('delivery_order') as bytes`);
  return (index?.bytes ?? 0) > LARGE_INDEX_BYTES;
}

interface FoundRow extends DueRow {
  inOrder: number;
  seen: number;
}

const EACH = `(values ${DELIVERY_CLASSES.map((_, place) => `(${place})`).join(', ')}) as each (class)`;
const WAITING = `select * from delivery where team_id = $1 and webhook_id = $2 and state = 'waiting'`;
/**
 * Loads due deliveries with their events, and `seen`: the last sequence number before the first new delivery or, if
 * there is none, the sequence number of the team's newest event. Deliveries and `seen` come from one snapshot, in which
 * every event up to the newest is visible. Events and the webhook are looked up one by one. Otherwise a planner without
 * statistics might scan rows of other webhooks.
 */
const withEvents = (inOrder: string, condition = 'true') => `
  select progress.seen, due.* from (
    select coalesce(
      (select min(event_sequence) - 1 from found where class = 0),
      (select sequence from event where team_id = $1 order by sequence desc limit 1), 0) as seen
  ) progress
  left join (
    select ${DUE_COLUMNS}, ${inOrder} as "inOrder" from found_due due
    cross join lateral (
      select id, type, sequence, body, trace from event
      where event.team_id = $1 and event.sequence = due.event_sequence limit 1
    ) event
    where (select state from webhook where team_id = $1 and id = $2) = 'active' and ${condition}
  ) due on true`;
// Selects the first deliveries of each class. If none is due, selects deliveries dated far ahead, which were stored
// before the clock was set back.
const due = (first: string) => `
  with wanted (class, most) as (values ${LATER.map((place) => `(${place}, $${6 + place}::integer)`).join(', ')}),
  found as materialized (
    select * from (
      ${WAITING} and event_sequence > 0 and class = 0 and event_sequence > $5 order by event_sequence, id limit $6
    ) live
    union all
    select found.* from wanted cross join lateral (
      ${WAITING} and class > 0 and class = wanted.class and next_at <= $3 order by next_at, id limit wanted.most
    ) found
  ),
  found_due as (
    select found.* from found
    cross join (select count(*) as live from found where class = 0 and next_at <= $3) due
    where case when found.class > 0 then true when due.live > 0 then next_at <= $3 else next_at > $4 end
    union all
    select ahead.* from wanted cross join lateral (
      ${WAITING} and class > 0 and class = wanted.class and next_at > $4 order by next_at, id limit wanted.most
    ) ahead
    where wanted.class not in (select class from found)
    ${first}
  )
  ${withEvents('case due.class when 0 then due.event_sequence else due.next_at end')}
  order by due.place, due."inOrder", due.id`;
const DUE = due('');
const DUE_AND_FIRST = due(`
    union all
    select first.* from (${WAITING} and id = $${6 + DELIVERY_CLASSES.length} and next_at <= $3) first
    where first.id not in (select id from found)`);
const IN_ORDER = `
  with found as materialized (
    select found.* from ${EACH} cross join lateral (
      ${WAITING} and event_sequence > 0 and class = each.class 
        and event_sequence > case class when 0 then $4::bigint else 0 end
      order by event_sequence, id limit $3
    ) found
  ),
  found_due as (select * from found order by event_sequence, id limit $3)
  ${withEvents('due.event_sequence', `${replayRuns('$1', '$2')} is null`)}
  order by due."inOrder", due.id`;

/**
 * @returns the due deliveries, and the sequence number up to which no new delivery is waiting (0 if no `live`
 *   deliveries were requested)
 */
export async function load(
  view: View,
  input: Parameters<Store['deliveries']['load']>[0] & { seen: number },
): Promise<{ due: DueDelivery[]; seen: number }> {
  const { teamId, webhookId, limits, first } = input;
  const rows = input.ordered
    ? await view.db.all<FoundRow>(IN_ORDER, teamId, webhookId, limits.live, input.seen)
    : await view.db.all<FoundRow>(
        first === undefined ? DUE : DUE_AND_FIRST,
        teamId,
        webhookId,
        view.now,
        view.now + LONGEST_WAIT_MS,
        input.seen,
        ...DELIVERY_CLASSES.map((name) => limits[name]),
        ...(first === undefined ? [] : [first]),
      );
  const due = rows.filter(({ id }) => id !== null).map(({ seen: _, inOrder: __, ...row }) => toDue(row));
  return { due, seen: limits.live > 0 ? (rows[0]?.seen ?? 0) : 0 };
}

/** Whether at least two thirds of a lease are left. If so, its holder need not renew the lease now. */
export function lasts({ leaseUntil }: { leaseUntil: number }, at: { now: number; leaseMs: number }): boolean {
  return leaseUntil - at.now >= (at.leaseMs * 2) / 3;
}

/**
 * Locks a lane of the team `$1`. A locked lane is skipped, so that nobody waits for a node that hangs. Each lane has a
 * lateral subquery of its own, so that the planner cannot choose to read all lanes.
 */
const FREE = `
  cross join lateral (
    select * from lane where lane.team_id = $1 and lane.webhook_id = given.webhook_id limit 1
    for update skip locked
  ) lane`;

/** Condition: the lane was locked. A list, because a join might read all lanes of the team. */
const IS_LOCKED = 'lane.team_id = $1 and lane.webhook_id = any(array(select webhook_id from free))';

const TAKE = `
  with given as materialized (
    select * from unnest($2::text[]) as given (webhook_id)
  ), free as materialized (
    select lane.webhook_id from given ${FREE}
    where lane.node_id is null or lane.node_id = $3 or lane.lease_until <= $5
  ), taken as (
    update lane set
      epoch = case when lane.node_id = $3 then lane.epoch else lane.epoch + 1 end,
      node_id = $3, lease_until = $4
    where ${IS_LOCKED}
    returning lane.webhook_id, lane.epoch
  )
  select $1 as "teamId", webhook_id as "webhookId", epoch from taken`;
/** A statement of its own, because Citus sends the parts of a statement that also inserts to all of its servers. */
const MAKE = `
  insert into lane (team_id, webhook_id, node_id, epoch, lease_until) values ($1, $2, $3, 1, $4)
  on conflict (team_id, webhook_id) do nothing`;

/**
 * Takes lanes that nobody holds or whose lease has expired. Renews lanes that the node already holds, without changing
 * their epoch. Returns the lanes that the node holds afterwards.
 */
export async function take(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly HeldLane[] },
): Promise<HeldLane[]> {
  const leaseUntil = tx.now + leaseMs;
  const teams = inTeams(lanes);
  // Lanes that were never held. If another node makes one of them first, that node holds it.
  const fresh = teams.flatMap(([, ofTeam]) => ofTeam).filter(({ epoch }) => epoch === 0);
  const made = fresh.map(({ teamId, webhookId }) => tx.db.run(MAKE, teamId, webhookId, nodeId, leaseUntil));
  const taken = teams.map(([teamId, ofTeam]) =>
    tx.db.all<HeldLane>(TAKE, teamId, ids(ofTeam), nodeId, leaseUntil, tx.now),
  );
  const [, found] = await Promise.all([Promise.all(made), Promise.all(taken)]);
  return found.flat();
}

const KEEP = `
  with given as materialized (
    select * from unnest($2::text[], $3::bigint[]) as given (webhook_id, epoch)
  ), free as materialized (
    select lane.webhook_id from given ${FREE}
    where lane.node_id = $4 and lane.epoch = given.epoch
  ), kept as (
    update lane set lease_until = $5
    where ${IS_LOCKED}
    returning lane.webhook_id
  )
  select $1 as "teamId", given.webhook_id as "webhookId", given.epoch, kept.webhook_id is not null as kept
  from given
  cross join lateral (
    select node_id, epoch from lane where lane.team_id = $1 and lane.webhook_id = given.webhook_id limit 1
  ) lane
  left join kept on kept.webhook_id = given.webhook_id
  where kept.webhook_id is not null or (lane.node_id = $4 and lane.epoch = given.epoch)`;

/**
 * Renews the lanes that the node holds. An expired lease is renewed too, if no other node has taken the lane. Returns
 * lanes that the node no longer holds (`lost`), and lanes that are locked (`late`).
 */
export async function keep(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly HeldLane[] },
): Promise<{ lost: HeldLane[]; late: HeldLane[] }> {
  const found = inTeams(lanes).map(([teamId, ofTeam]) =>
    tx.db.all<HeldLane & { kept: boolean }>(
      KEEP,
      teamId,
      ids(ofTeam),
      epochs(ofTeam),
      nodeId,
      tx.now + leaseMs,
    ),
  );
  const held = new Map((await Promise.all(found)).flat().map((lane) => [keyOf(lane), lane.kept]));
  return {
    lost: lanes.filter((lane) => !held.has(keyOf(lane))),
    late: lanes.filter((lane) => held.get(keyOf(lane)) === false),
  };
}

const RELEASE = `
  update lane set node_id = null, lease_until = 0
  from unnest($2::text[], $3::bigint[]) as given (webhook_id, epoch)
  where lane.team_id = $1 and lane.webhook_id = given.webhook_id and lane.node_id = $4 and lane.epoch = given.epoch`;

export async function release(
  tx: Tx,
  { nodeId, lanes }: { nodeId: string; lanes: readonly HeldLane[] },
): Promise<void> {
  const released = inTeams(lanes).map(([teamId, ofTeam]) =>
    tx.db.run(RELEASE, teamId, ids(ofTeam), epochs(ofTeam), nodeId),
  );
  await Promise.all(released);
}

/** The key of a lane in maps. */
export function keyOf({ teamId, webhookId }: LaneName): string {
  return `${teamId} ${webhookId}`;
}

/** Groups lanes by team, in the order of their keys. */
export function inTeams<Named extends LaneName>(lanes: readonly Named[]): [teamId: string, Named[]][] {
  const sorted = lanes.toSorted((a, b) => (a.webhookId < b.webhookId ? -1 : 1));
  return byTeam(sorted, ({ teamId }) => teamId);
}

const ids = (lanes: readonly LaneName[]) => lanes.map(({ webhookId }) => webhookId);
const epochs = (lanes: readonly HeldLane[]) => lanes.map(({ epoch }) => epoch);
