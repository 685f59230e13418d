/** Status of the database file and of its workload. */
import { statSync } from 'node:fs';
import { NEWEST_SCHEMA } from '../migrations.ts';
import type { DatabaseStatus, DueStatus, StatusOperations, WorkStatus } from '../status-operations.ts';
import { FIRST_DUE_AT, WAITING_LANES } from './lanes.ts';
import type { View } from './transaction.ts';

export function database(view: View, path: string): DatabaseStatus {
  const { version } = view.db.get<{ version: string }>('select sqlite_version() as version') as {
    version: string;
  };
  return {
    kind: 'sqlite',
    version,
    bytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    schema: schemaVersion(view),
  };
}

export function schema(view: View): { found: number; newest: number } {
  return { found: schemaVersion(view), newest: NEWEST_SCHEMA };
}

function schemaVersion(view: View): number {
  return view.db.get<{ user_version: number }>('pragma user_version')?.user_version ?? 0;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const JOBS = `
  select state, count(*) as count from
    (select state from job indexed by job_slot where finished_at is null limit ?)
  group by state`;
// One seek for each lane, so that only index entries of waiting deliveries are counted.
const OF_A_LANE = `
  cross join delivery d indexed by delivery_history
    on d.team_id = lane.team_id and d.webhook_id = lane.webhook_id and d.state = 'waiting'`;
const WAITING = `
  ${WAITING_LANES} select count(*) as count from
    (select 1 from lane ${OF_A_LANE} where lane.webhook_id is not null limit ?)`;
const OLDEST = `
  ${WAITING_LANES} select min(created_at) as at from
    (select (select min(d.created_at) from delivery d indexed by delivery_history
             where d.team_id = lane.team_id and d.webhook_id = lane.webhook_id and d.state = 'waiting') as created_at
     from lane where lane.webhook_id is not null limit ?)`;

export function work(view: View, { most }: Parameters<StatusOperations['work']>[0]): WorkStatus {
  const rows = view.db.all<{ state: string; count: number }>(JOBS, most);
  const jobs = Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  const { queued = 0, running = 0, retrying = 0 } = jobs;
  const waiting = view.db.get<{ count: number }>(WAITING, most)?.count ?? 0;
  return {
    jobs: { queued, running, retrying, complete: queued + running + retrying < most },
    deliveries: {
      waiting,
      oldestWaitingAt: view.db.get<{ at: number | null }>(OLDEST, most)?.at ?? null,
      complete: waiting < most,
    },
  };
}

const DUE = `
  ${WAITING_LANES} select failing, count(*) as webhooks, min(at) as oldestDueAt from (
    select webhook.failing_since is not null as failing, ${FIRST_DUE_AT} as at
    from lane cross join webhook on webhook.team_id = lane.team_id and webhook.id = lane.webhook_id
    where webhook.state = 'active')
  where at <= ? group by failing`;

export function due(view: View): { well: DueStatus; failing: DueStatus } {
  const rows = view.db.all<{ failing: number } & DueStatus>(DUE, view.now);
  const of = (failing: number): DueStatus => {
    const { webhooks = 0, oldestDueAt = null } = rows.find((row) => row.failing === failing) ?? {};
    return { webhooks, oldestDueAt };
  };
  return { well: of(0), failing: of(1) };
}
