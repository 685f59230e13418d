/**
 * State and status of the whole instance: named values, leases on chores, the schema version, and the amount of waiting
 * work.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { earlier } from '../../std/earlier.ts';
import { newestSchema } from '../migrations.ts';
import { UNFINISHED } from '../rows.ts';
import { both } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { dueTeams } from './agenda.ts';
import { FIRST_DUE_AT, laneNames, lanePages } from './lanes.ts';

/** Stores a value under a name unless the name already has a value. Returns the stored value. */
export async function claim(tx: Tx, { name, value }: { name: string; value: string }): Promise<string> {
  await tx.db.run`
    insert into instance (name, value) values (${name}, ${value}) on conflict (name) do nothing`;
  return (await get(tx, { name })) ?? value;
}

export async function get(view: View, { name }: { name: string }): Promise<string | undefined> {
  return (await view.db.get<{ value: string }>`select value from instance where name = ${name}`)?.value;
}

/**
 * Acquires or renews this node's lease on a chore for `forMs`, and returns whether the node holds the lease. Always
 * returns true on SQLite, which has only one node.
 *
 * At most one node holds a lease, because the statement locks the row, and PostgreSQL evaluates the condition again for
 * a transaction that waited for the lock. A lease that ends too far in the future was granted before the clock was set
 * back, and may be taken over.
 */
export async function lease(
  tx: Tx,
  { name, nodeId, forMs }: { name: string; nodeId: string; forMs: number },
): Promise<boolean> {
  const taken = await tx.db.run`
    insert into chore (name, node_id, lease_until) values (${name}, ${nodeId}, ${tx.now + forMs})
    on conflict (name) do update set node_id = excluded.node_id, lease_until = excluded.lease_until
    where chore.node_id = excluded.node_id or chore.lease_until <= ${tx.now}
      or chore.lease_until > ${tx.now + 2 * forMs}`;
  return taken > 0;
}

/** Unfinished work of all teams. `complete` is false if counting stopped at the limit. */
export interface WorkStatus {
  jobs: { queued: number; running: number; retrying: number; complete: boolean };
  deliveries: {
    waiting: number;
    /** When the oldest waiting delivery was created; epoch milliseconds. */
    oldestWaitingAt: number | null;
    complete: boolean;
  };
}

/** Number of active webhooks of all teams that have due deliveries. */
export interface DueStatus {
  webhooks: number;
  /** When the delivery that has been due longest became due; epoch milliseconds, or null if no delivery is due. */
  oldestDueAt: number | null;
}
/** Maximum number of teams whose deliveries are counted, and of teams that are asked at the same time. */
const MAX_TEAMS = 1_000;
const CONCURRENT = 8;

// The order lists all columns of `delivery_order`, so that the planner can use no other index.
const WAITING = `
  select count(*)::integer as count from (
    select 1 from delivery d /* use delivery_order */
    where d.team_id = $1 and d.state = 'waiting' and d.event_sequence > 0
    order by d.team_id, d.webhook_id, d.class, d.event_sequence, d.id limit $2) waiting`;
const OLDEST = `
  select min(created_at) as at from (
    select (
      select d.created_at from delivery d /* use delivery_history */
      where d.team_id = $1 and d.webhook_id = named.webhook_id and (d.state || '') = 'waiting'
      order by d.created_at, d.id limit 1) as created_at
    from unnest($2::text[]) as named (webhook_id)) waiting`;

const SCHEMA = {
  sqlite: 'select user_version as found from pragma_user_version',
  postgres: 'select coalesce(max(number), 0) as found from schema_version',
};

/** Returns the schema version of the database, and the newest version that this code knows. */
export async function schema(view: View): Promise<{ found: number; newest: number }> {
  const row = await view.db.get<{ found: number }>(SCHEMA);
  return { found: row?.found ?? 0, newest: newestSchema() };
}

export async function work(view: View, { most }: { most: number }): Promise<WorkStatus> {
  // The order lists all columns of `job_slot`, so that the planner can use no other index.
  const rows = await view.db.all<{ state: string; count: number }>`
    select state, count(*)::integer as count from
      (select state from job /* use job_slot */ where ${UNFINISHED}
       order by team_id, workflow_id, slot limit ${most}) unfinished
    group by state`;
  const jobs = Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  const { queued = 0, running = 0, retrying = 0 } = jobs;
  return {
    jobs: { queued, running, retrying, complete: queued + running + retrying < most },
    deliveries: await waiting(view, most),
  };
}

async function waiting(view: View, most: number): Promise<WorkStatus['deliveries']> {
  let [lanes, count] = [0, 0];
  let oldestWaitingAt: number | null = null;
  const isComplete = await ofTeams(view, Number.MAX_SAFE_INTEGER, async (teamId) => {
    const counted = await view.db.get<{ count: number }>(WAITING, teamId, most);
    count = Math.min(most, count + (counted?.count ?? 0));
    for await (const page of lanePages((after) => laneNames(view, { teamId, after }))) {
      const oldest = await view.db.get<{ at: number | null }>(OLDEST, teamId, page);
      oldestWaitingAt = earlier(oldestWaitingAt, oldest?.at ?? null);
      lanes += page.length;
      if (lanes >= most) break;
    }
    return lanes < most;
  });
  return { waiting: count, oldestWaitingAt, complete: isComplete && count < most };
}

/**
 * Visits the teams whose lanes may be due by `until`, those with an agenda longest in the past first. Stops when `visit`
 * returns false, and after 1,000 teams. Returns whether all were visited.
 */
async function ofTeams(
  view: View,
  until: number,
  visit: (teamId: string) => Promise<boolean>,
): Promise<boolean> {
  const teams = await dueTeams(view, { item: 'lanes', until, limit: MAX_TEAMS });
  for (let from = 0; from < teams.length; from += CONCURRENT, await nextTurn()) {
    const some = teams.slice(from, from + CONCURRENT);
    const goOn = await Promise.all(some.map(({ teamId }) => visit(teamId)));
    if (goOn.includes(false)) return false;
  }
  return teams.length < MAX_TEAMS;
}

const DUE = both(
  (pick) => `
  with first_due as materialized (
    select webhook.failing_since is not null as failing, ${pick(FIRST_DUE_AT)} as at
    from unnest($3::text[]) as named (webhook_id) cross join webhook
    where webhook.team_id = $1 and webhook.id = named.webhook_id and webhook.state = 'active'
  )
  select failing, count(*)::integer as webhooks, min(at) as "oldestDueAt" from first_due where at <= $2
  group by failing`,
);

/**
 * Counts webhooks with due deliveries. Webhooks whose last attempt failed are counted separately, because their
 * endpoints determine how late deliveries are.
 */
export async function due(view: View): Promise<{ well: DueStatus; failing: DueStatus }> {
  const found = { well: { ...NOTHING_DUE }, failing: { ...NOTHING_DUE } };
  await ofTeams(view, view.now, async (teamId) => {
    for await (const page of lanePages((after) => laneNames(view, { teamId, after }))) {
      const rows = await view.db.all<{ failing: boolean } & DueStatus>(DUE, teamId, view.now, page);
      for (const { failing, webhooks, oldestDueAt } of rows) {
        const sum = failing ? found.failing : found.well;
        sum.webhooks += webhooks;
        sum.oldestDueAt = earlier(sum.oldestDueAt, oldestDueAt);
      }
    }
    return true;
  });
  return found;
}

const NOTHING_DUE: DueStatus = { webhooks: 0, oldestDueAt: null };
