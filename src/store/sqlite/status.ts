/** Status of the database file and of its workload. */
import { statSync } from 'node:fs';
import { NEWEST_SCHEMA } from '../migrations.ts';
import type { DatabaseStatus, DueStatus, WorkStatus } from '../status-operations.ts';
import { FIRST_DUE_AT, type LanePage } from './lanes.ts';
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
const OF_A_PAGE = `
  json_each(?1) named cross join delivery d indexed by delivery_history
    on d.team_id = named.value ->> 0 and d.webhook_id = named.value ->> 1 and d.state = 'waiting'`;
const WAITING = `select count(*) as count from (select 1 from ${OF_A_PAGE} limit ?2)`;
const OLDEST = `
  select min(created_at) as at from
    (select (select min(d.created_at) from delivery d indexed by delivery_history
             where d.team_id = named.value ->> 0 and d.webhook_id = named.value ->> 1 and d.state = 'waiting')
              as created_at
     from json_each(?1) named)`;

export function jobs(view: View, { most }: { most: number }): WorkStatus['jobs'] {
  const rows = view.db.all<{ state: string; count: number }>(JOBS, most);
  const found = Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  const { queued = 0, running = 0, retrying = 0 } = found;
  return { queued, running, retrying, complete: queued + running + retrying < most };
}

/** What waits in a page of lanes: counted up to `most`, and when the oldest was created. */
export function waiting(
  view: View,
  { page, most }: { page: LanePage; most: number },
): { count: number; oldestAt: number | null } {
  const named = JSON.stringify(page);
  return {
    count: view.db.get<{ count: number }>(WAITING, named, most)?.count ?? 0,
    oldestAt: view.db.get<{ at: number | null }>(OLDEST, named)?.at ?? null,
  };
}

const DUE = `
  select failing, count(*) as webhooks, min(at) as oldestDueAt from (
    select webhook.failing_since is not null as failing, ${FIRST_DUE_AT} as at
    from json_each(?1) named
    cross join webhook on webhook.team_id = named.value ->> 0 and webhook.id = named.value ->> 1
    where webhook.state = 'active')
  where at <= ?2 group by failing`;

/** The webhooks of a page of lanes that have something due. */
export function due(
  view: View,
  page: LanePage,
): { failing: boolean; webhooks: number; oldestDueAt: number }[] {
  return view.db
    .all<{ failing: number; webhooks: number; oldestDueAt: number }>(DUE, JSON.stringify(page), view.now)
    .map((row) => ({ ...row, failing: row.failing === 1 }));
}

/** Goes through the pages of lanes, of which it reads one in a turn of the event loop. */
export async function workOf(
  pages: AsyncIterable<LanePage>,
  { most }: { most: number },
  read: {
    jobs(input: { most: number }): Promise<WorkStatus['jobs']>;
    waiting(input: { page: LanePage; most: number }): Promise<ReturnType<typeof waiting>>;
  },
): Promise<WorkStatus> {
  let lanes = 0;
  let count = 0;
  let oldestWaitingAt: number | null = null;
  for await (const page of pages) {
    const found = await read.waiting({ page, most: most - count });
    count += found.count;
    oldestWaitingAt = earlier(oldestWaitingAt, found.oldestAt);
    lanes += page.length;
    if (lanes >= most) break;
  }
  return {
    jobs: await read.jobs({ most }),
    deliveries: { waiting: count, oldestWaitingAt, complete: count < most },
  };
}

/** Likewise. */
export async function dueOf(
  pages: AsyncIterable<LanePage>,
  read: (page: LanePage) => Promise<ReturnType<typeof due>>,
): Promise<{ well: DueStatus; failing: DueStatus }> {
  const found = { well: { ...NOTHING_DUE }, failing: { ...NOTHING_DUE } };
  for await (const page of pages) {
    for (const { failing, webhooks, oldestDueAt } of await read(page)) {
      const sum = failing ? found.failing : found.well;
      sum.webhooks += webhooks;
      sum.oldestDueAt = earlier(sum.oldestDueAt, oldestDueAt);
    }
  }
  return found;
}

const NOTHING_DUE: DueStatus = { webhooks: 0, oldestDueAt: null };

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}
