/**
 * Whose a lane is: one node's at a time, for as long as it renews its lease.
 *
 *     free ──take: epoch + 1──▶ held ──keep──▶ held
 *      ▲                         │ └──lease over, another one takes it: epoch + 1──▶ held by that one
 *      └─────────release─────────┘
 *
 * Each step is one statement that compares and sets, by the database's clock. Rows are touched in the order of their
 * key, so that no two nodes wait for each other.
 */
import type { HeldLane, LaneHolder, LaneName } from '../webhook-operations.ts';
import type { Tx } from './transaction.ts';

/** Whether enough of a lease is left for its holder to believe in it for that long, and no renewal is needed now. */
export function lasts({ leaseUntil }: { leaseUntil: number }, at: { now: number; leaseMs: number }): boolean {
  return leaseUntil - at.now >= (at.leaseMs * 2) / 3;
}

/**
 * Takes lanes that nobody holds, or whose lease is over, and renews those that the node holds: these keep their
 * epoch. Answers the ones that are the node's now.
 */
export function take(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly LaneName[] },
): Promise<HeldLane[]> {
  return tx.db.all<HeldLane>(
    `insert into lane (team_id, webhook_id, node_id, epoch, lease_until)
     select team_id, webhook_id, $3, 1, $4 from unnest($1::text[], $2::text[]) as asked (team_id, webhook_id)
     on conflict (team_id, webhook_id) do update set
       epoch = case when lane.node_id = excluded.node_id then lane.epoch else lane.epoch + 1 end,
       node_id = excluded.node_id, lease_until = excluded.lease_until
     where lane.node_id is null or lane.node_id = excluded.node_id or lane.lease_until <= $5
     returning team_id as "teamId", webhook_id as "webhookId", epoch`,
    ...names(lanes),
    nodeId,
    tx.now + leaseMs,
    tx.now,
  );
}

/** Answers those that the node does not hold any more. One whose lease is over is kept if nobody has taken it. */
export async function keep(
  tx: Tx,
  { nodeId, leaseMs, lanes }: LaneHolder & { lanes: readonly HeldLane[] },
): Promise<HeldLane[]> {
  if (lanes.length === 0) return [];
  const kept = await tx.db.all<HeldLane>(
    `update lane set lease_until = $5
     from unnest($1::text[], $2::text[], $3::bigint[]) as asked (team_id, webhook_id, epoch)
     where lane.team_id = asked.team_id and lane.webhook_id = asked.webhook_id
       and lane.node_id = $4 and lane.epoch = asked.epoch
     returning lane.team_id as "teamId", lane.webhook_id as "webhookId", lane.epoch`,
    ...namesAndEpochs(lanes),
    nodeId,
    tx.now + leaseMs,
  );
  const held = new Set(kept.map(keyOf));
  return lanes.filter((lane) => !held.has(keyOf(lane)));
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

/** Names a lane, of whatever epoch. */
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
