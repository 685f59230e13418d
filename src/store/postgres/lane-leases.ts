/**
 * Leases of lanes: one node at a time holds a lane, for as long as it renews its lease.
 *
 *     free ──take: epoch + 1──▶ held ──keep──▶ held
 *      ▲                         │ └──lease over, another one takes it: epoch + 1──▶ held by that one
 *      └─────────release─────────┘
 *
 * Each step is one compare-and-set statement, by the database's clock. Rows are locked in the order of their key, so
 * that no two nodes deadlock.
 */

import type { Tx } from '../sql.ts';
import type { HeldLane, LaneHolder, LaneName } from '../webhook-operations.ts';

/** Whether at least two thirds of a lease are left, so that its holder need not renew it now. */
export function lasts({ leaseUntil }: { leaseUntil: number }, at: { now: number; leaseMs: number }): boolean {
  return leaseUntil - at.now >= (at.leaseMs * 2) / 3;
}

/**
 * Locks a lane by its key, or skips it when it is locked: nobody waits for a node that hangs. A lateral subquery for
 * each, so that the planner cannot choose to read all lanes.
 */
const FREE = `
  cross join lateral (
    select * from lane where lane.team_id = asked.team_id and lane.webhook_id = asked.webhook_id limit 1
    for update skip locked
  ) lane`;

/**
 * Takes lanes that nobody holds or whose lease has expired, and renews those that the node holds, which keep their
 * epoch. Returns the lanes that the node holds now.
 */
export function take(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly LaneName[] },
): Promise<HeldLane[]> {
  return tx.db.all<HeldLane>(
    `with asked as materialized (
       select * from unnest($1::text[], $2::text[]) as asked (team_id, webhook_id)
     ), free as materialized (
       select lane.team_id, lane.webhook_id from asked ${FREE}
       where lane.node_id is null or lane.node_id = $3 or lane.lease_until <= $5
     ), made as (
       insert into lane (team_id, webhook_id, node_id, epoch, lease_until)
       select team_id, webhook_id, $3, 1, $4 from asked
       where not exists (
         select 1 from lane where lane.team_id = asked.team_id and lane.webhook_id = asked.webhook_id
       )
       on conflict (team_id, webhook_id) do nothing
       returning team_id, webhook_id, epoch
     ), taken as (
       update lane set
         epoch = case when lane.node_id = $3 then lane.epoch else lane.epoch + 1 end,
         node_id = $3, lease_until = $4
       from free where lane.team_id = free.team_id and lane.webhook_id = free.webhook_id
       returning lane.team_id, lane.webhook_id, lane.epoch
     )
     select team_id as "teamId", webhook_id as "webhookId", epoch from made
     union all select team_id, webhook_id, epoch from taken`,
    ...names(lanes),
    nodeId,
    tx.now + leaseMs,
    tx.now,
  );
}

/**
 * Renews the lanes that the node holds, also after the lease has expired if nobody has taken them. Returns those that
 * the node no longer holds (`lost`), and those that are locked at this moment (`late`).
 */
export async function keep(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly HeldLane[] },
): Promise<{ lost: HeldLane[]; late: HeldLane[] }> {
  if (lanes.length === 0) return { lost: [], late: [] };
  const found = await tx.db.all<HeldLane & { kept: boolean }>(
    `with asked as materialized (
       select * from unnest($1::text[], $2::text[], $3::bigint[]) as asked (team_id, webhook_id, epoch)
     ), free as materialized (
       select lane.team_id, lane.webhook_id from asked ${FREE}
       where lane.node_id = $4 and lane.epoch = asked.epoch
     ), kept as (
       update lane set lease_until = $5
       from free where lane.team_id = free.team_id and lane.webhook_id = free.webhook_id
       returning lane.team_id, lane.webhook_id
     )
     select asked.team_id as "teamId", asked.webhook_id as "webhookId", asked.epoch,
            kept.team_id is not null as kept
     from asked
     cross join lateral (
       select node_id, epoch from lane
       where lane.team_id = asked.team_id and lane.webhook_id = asked.webhook_id limit 1
     ) lane
     left join kept on kept.team_id = asked.team_id and kept.webhook_id = asked.webhook_id
     where kept.team_id is not null or (lane.node_id = $4 and lane.epoch = asked.epoch)`,
    ...namesAndEpochs(lanes),
    nodeId,
    tx.now + leaseMs,
  );
  const held = new Map(found.map((lane) => [keyOf(lane), lane.kept]));
  return {
    lost: lanes.filter((lane) => !held.has(keyOf(lane))),
    late: lanes.filter((lane) => held.get(keyOf(lane)) === false),
  };
}

export async function release(
  tx: Tx,
  { nodeId, lanes }: { nodeId: string; lanes: readonly HeldLane[] },
): Promise<void> {
  if (lanes.length === 0) return;
  await tx.db.run(
    `update lane set node_id = null, lease_until = 0
     from unnest($1::text[], $2::text[], $3::bigint[]) as asked (team_id, webhook_id, epoch)
     where lane.team_id = asked.team_id and lane.webhook_id = asked.webhook_id
       and lane.node_id = $4 and lane.epoch = asked.epoch`,
    ...namesAndEpochs(lanes),
    nodeId,
  );
}

/** The key of a lane in maps. */
export function keyOf({ teamId, webhookId }: LaneName): string {
  return `${teamId} ${webhookId}`;
}

function names(lanes: readonly LaneName[]): [string[], string[]] {
  const sorted = inOrder(lanes);
  return [sorted.map(({ teamId }) => teamId), sorted.map(({ webhookId }) => webhookId)];
}

function namesAndEpochs(lanes: readonly HeldLane[]): [string[], string[], number[]] {
  const sorted = inOrder(lanes);
  return [...names(sorted), sorted.map(({ epoch }) => epoch)];
}

function inOrder<Named extends LaneName>(lanes: readonly Named[]): Named[] {
  return lanes.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}
