/** How much work waits in the database. */

import { FIRST_DUE_AT, WAITING_LANES } from '../postgres/lanes.ts';
import type { View } from '../sql.ts';
import type { DueStatus, StatusOperations, WorkStatus } from '../status-operations.ts';
import { UNFINISHED } from './unfinished.ts';

// Ordered by all columns of `job_slot`, so that no other index fits.
const JOBS = `
  select state, count(*)::integer as count from
    (select state from job /* use job_slot */ where ${UNFINISHED}
     order by team_id, workflow_id, slot limit $1) unfinished
  group by state`;
// One seek for each lane, so that only index entries of waiting deliveries are counted.
const OF_A_LANE = (limit: string) => `
  cross join lateral (
    select d.created_at from delivery d
    where d.team_id = waiting_lane.team_id and d.webhook_id = waiting_lane.webhook_id
      and (d.state || '') = 'waiting'
    order by d.created_at, d.id limit ${limit}) one`;
const WAITING = `
  ${WAITING_LANES} select count(*)::integer as count from (select 1 from waiting_lane ${OF_A_LANE('$1')} limit $1) waiting`;
const OLDEST = `
  ${WAITING_LANES} select min(created_at) as at from
    (select one.created_at from waiting_lane ${OF_A_LANE('1')} limit $1) waiting`;

export async function work(
  view: View,
  { most }: Parameters<StatusOperations['work']>[0],
): Promise<WorkStatus> {
  const [rows, counted, oldest] = await Promise.all([
    view.db.all<{ state: string; count: number }>(JOBS, most),
    view.db.get<{ count: number }>(WAITING, most),
    view.db.get<{ at: number | null }>(OLDEST, most),
  ]);
  const jobs = Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  const { queued = 0, running = 0, retrying = 0 } = jobs;
  const waiting = counted?.count ?? 0;
  return {
    jobs: { queued, running, retrying, complete: queued + running + retrying < most },
    deliveries: { waiting, oldestWaitingAt: oldest?.at ?? null, complete: waiting < most },
  };
}

const DUE = `
  ${WAITING_LANES}, first_due as materialized (
    select webhook.failing_since is not null as failing, ${FIRST_DUE_AT} as at
    from waiting_lane
    join webhook on webhook.team_id = waiting_lane.team_id and webhook.id = waiting_lane.webhook_id
    where webhook.state = 'active'
  )
  select failing, count(*)::integer as webhooks, min(at) as "oldestDueAt" from first_due where at <= $1
  group by failing`;

export async function due(view: View): Promise<{ well: DueStatus; failing: DueStatus }> {
  const rows = await view.db.all<{ failing: boolean } & DueStatus>(DUE, view.now);
  const of = (failing: boolean): DueStatus => {
    const { webhooks = 0, oldestDueAt = null } = rows.find((row) => row.failing === failing) ?? {};
    return { webhooks, oldestDueAt };
  };
  return { well: of(false), failing: of(true) };
}
