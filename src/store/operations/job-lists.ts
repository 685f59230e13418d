/** Lists and counts of jobs, and pruning. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { hasEnded, type Job, type JobOrigin, type JobState } from '../../model/job.ts';
import type { WorkflowRef } from '../../model/workflow.ts';
import { idsBetween } from '../page.ts';
import { JOB, type JobRow, OF_JOB, toJob, UNFINISHED } from '../rows.ts';
import { MAX_BATCH_BYTES, type Value } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { REMEMBERED_MS } from './idempotency.ts';

/** The few fields of a job that overviews show. */
export type JobGlance = Pick<Job, 'id' | 'state' | 'createdAt' | 'startedAt' | 'finishedAt'>;

/**
 * Lists a team's jobs, newest first, optionally only those of one workflow, in some states or of one origin. Ids grow
 * with time, so that ordering by id is ordering by creation time.
 */
export async function list(
  view: View,
  input: {
    teamId: string;
    workflowId?: string;
    states?: readonly JobState[];
    origin?: JobOrigin;
    /** Creation times in epoch milliseconds. Both bounds are inclusive. */
    since?: number;
    until?: number;
    /** The id of the last job on the previous page. */
    before?: string;
    limit: number;
  },
): Promise<Job[]> {
  const { first, end, since, until } = idsBetween('job', input);
  const search: Search = { ...input, first, end, since, until };
  if (input.workflowId !== undefined) {
    // Unfinished jobs are read first. A job that ends between the two reads is then found twice instead of never.
    const unfinished = await rowsOf(view, { ...search, part: 'unfinished' });
    const ended = await rowsOf(view, { ...search, part: 'ended' });
    return newestOf([...unfinished, ...ended], input.limit).map(toJob);
  }
  if (input.states !== undefined && !input.states.some(hasEnded))
    return (await rowsOf(view, { ...search, part: 'unfinished' })).map(toJob);
  const isRare = input.states?.every(isUnsuccessful) === true;
  const isSearch = input.origin !== undefined || input.states !== undefined;
  if (isSearch && !isRare) return listInParts(view, search);
  return (await rowsOf(view, search)).map(toJob);
}

interface Search
  extends Omit<Parameters<typeof list>[1], 'since' | 'until' | 'before'>,
    ReturnType<typeof idsBetween> {
  /**
   * Limits the search to unfinished jobs or to ended jobs. Each of the two has its own index, which `indexed` chooses.
   */
  part?: 'unfinished' | 'ended';
}

async function rowsOf(view: View, search: Search): Promise<JobRow[]> {
  const { teamId, workflowId, states, origin, first, end, since, until, limit } = search;
  const values: Value[] = [teamId, first, end, since, until, limit];
  const given = (condition: string, value: Value | undefined) =>
    value === undefined ? '' : `and ${condition.replace('?', `$${values.push(value)}`)}`;
  return view.db.all<JobRow>(
    `select ${JOB} from job ${indexed(search)}
       and team_id = $1 and id >= $2 and id < $3 and created_at between $4 and $5
       ${given('workflow_id = ?', workflowId)} ${given('origin = ?', origin)} ${given('state = any(?)', states)}
     order by id desc limit $6`,
    ...values,
  );
}

/**
 * Names the index that reads the fewest rows, and adds the condition that this index requires. If no index fits, the
 * search uses the primary key.
 */
function indexed({ part, states }: Search): string {
  if (part === 'unfinished') return `/* use job_slot */ where ${UNFINISHED}`;
  if (part === 'ended') return '/* use job_history */ where finished_at is not null';
  if (states?.every(isUnsuccessful))
    return `/* use job_unsuccessful */ where state in ('failed', 'canceled')`;
  return 'where true';
}

const isUnsuccessful = (state: JobState) => state === 'failed' || state === 'canceled';

/** Jobs scanned at a time. */
const SCANNED_AT_ONCE = 2_000;

/**
 * Searches by origin, or by a combination of states, for which there is no index. Scans the team's jobs in parts, with
 * a turn of the event loop between two parts.
 */
async function listInParts(view: View, search: Search): Promise<Job[]> {
  const found: JobRow[] = [];
  for (let { end } = search; ; await nextTurn()) {
    const last = await view.db.get<{ id: string }>`
      select id from job where team_id = ${search.teamId} and id >= ${search.first} and id < ${end}
      order by id desc limit 1 offset ${SCANNED_AT_ONCE - 1}`;
    const limit = search.limit - found.length;
    found.push(...(await rowsOf(view, { ...search, first: last?.id ?? search.first, end, limit })));
    if (last === undefined || found.length === search.limit) return found.map(toJob);
    end = last.id;
  }
}

function newestOf<Row extends { id: string }>(rows: readonly Row[], limit: number): Row[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return [...byId.values()].sort((one, other) => (one.id < other.id ? 1 : -1)).slice(0, limit);
}

const GLANCE = `select workflow_id as "workflowId", job.id, state, created_at as "createdAt",
  started_at as "startedAt", finished_at as "finishedAt"`;
const RECENT_UNFINISHED = `${GLANCE} from job /* use job_slot */
  where team_id = $1 and workflow_id = any($2::text[]) and ${UNFINISHED}`;
// One short index search per workflow. On PostgreSQL the order has the workflow first, so that the planner cannot read the
// team's jobs in the order of the primary key until it has found enough of this workflow.
const RECENT_ENDED = {
  sqlite: `
    ${GLANCE} from json_each($2) wanted cross join job
    where team_id = $1 and job.id in
      (select id from job indexed by job_history
       where team_id = $1 and workflow_id = wanted.value and finished_at is not null order by id desc limit $3)`,
  postgres: `
    select newest.* from unnest($2::text[]) as wanted (id) cross join lateral (
      ${GLANCE} from job
      where team_id = $1 and workflow_id >= wanted.id and workflow_id <= wanted.id and finished_at is not null
      order by workflow_id desc, job.id desc limit $3
    ) newest`,
};

/** Returns the newest `each` jobs of each workflow, newest first. Workflows without jobs have no entry in the map. */
export async function recent(
  view: View,
  { teamId, workflowIds, each }: { teamId: string; workflowIds: readonly string[]; each: number },
): Promise<Map<string, JobGlance[]>> {
  type Glance = JobGlance & { workflowId: string };
  // Unfinished jobs first, as in `list`.
  const unfinished = await view.db.all<Glance>(RECENT_UNFINISHED, teamId, workflowIds);
  const ended = await view.db.all<Glance>(RECENT_ENDED, teamId, workflowIds, each);
  const ofWorkflow = Map.groupBy([...unfinished, ...ended], ({ workflowId }) => workflowId);
  return new Map([...ofWorkflow].map(([id, jobs]) => [id, newestOf(jobs, each)]));
}

/** What lists show of a workflow besides its row. */
export interface WorkflowSummary {
  /** Number of records in the newest version. */
  records: number;
  history: VersionHistory;
  /** The job in slot 0, if one is unfinished. */
  current: Job | undefined;
  /** The newest job that has ended. */
  last: Job | undefined;
}

/** The readable versions of a workflow, besides version 0. */
export interface VersionHistory {
  versions: number;
  /** Null before the first version. */
  oldest: { version: number; publishedAt: number } | null;
  /** Total size of the records that the newest version does not contain, in bytes. */
  bytes: number;
}

export const NO_HISTORY: VersionHistory = { versions: 0, oldest: null, bytes: 0 };

const CURRENT = `
  select ${JOB} from job /* use job_slot */
  where team_id = $1 and workflow_id = any($2::text[]) and slot = 0 and ${UNFINISHED}`;
const LAST = {
  sqlite: `
    select ${OF_JOB} from json_each($2) wanted cross join job
    where team_id = $1 and job.id = (
      select id from job indexed by job_history
      where team_id = $1 and workflow_id = wanted.value and finished_at is not null order by id desc limit 1)`,
  postgres: `
    select last.* from unnest($2::text[]) as wanted (id) cross join lateral (
      select ${JOB} from job
      where team_id = $1 and workflow_id >= wanted.id and workflow_id <= wanted.id and finished_at is not null
      order by workflow_id desc, job.id desc limit 1
    ) last`,
};

/** Reads the summaries of many workflows in three statements. Workflows that do not exist have no entry in the map. */
export async function summaries(
  view: View,
  { teamId, workflowIds }: { teamId: string; workflowIds: readonly string[] },
): Promise<Map<string, WorkflowSummary>> {
  const totals = await view.db.all<TotalRow>`
    select workflow.id, coalesce(version.total, 0) as records, workflow.current_version as current,
      oldest.number as oldest, oldest.published_at as "oldestAt",
      coalesce(version.replaced_bytes, 0) as replaced, coalesce(oldest.replaced_bytes, 0) as "replacedBefore"
    from workflow
    left join version on version.team_id = workflow.team_id and version.workflow_id = workflow.id
      and version.number = workflow.current_version
    left join version oldest on oldest.team_id = workflow.team_id and oldest.workflow_id = workflow.id
      and oldest.number = greatest(1, workflow.oldest_version)
    where workflow.team_id = ${teamId} and workflow.id = any(${workflowIds}::text[])`;
  // Unfinished jobs first, as in `list`.
  const current = await view.db.all<JobRow>(CURRENT, teamId, workflowIds);
  const last = await view.db.all<JobRow>(LAST, teamId, workflowIds);
  const byWorkflow = (rows: readonly JobRow[]) => new Map(rows.map((row) => [row.workflowId, toJob(row)]));
  const [currentOf, lastOf] = [byWorkflow(current), byWorkflow(last)];
  return new Map(
    totals.map((row) => {
      const { id, records } = row;
      return [id, { records, history: historyOf(row), current: currentOf.get(id), last: lastOf.get(id) }];
    }),
  );
}

interface TotalRow {
  id: string;
  records: number;
  current: number;
  oldest: number | null;
  oldestAt: number;
  /** Bytes of all records that were replaced or removed up to the newest version, and up to the oldest readable one. */
  replaced: number;
  replacedBefore: number;
}

function historyOf({ current, oldest, oldestAt, replaced, replacedBefore }: TotalRow): VersionHistory {
  if (oldest === null) return NO_HISTORY;
  return {
    versions: current - oldest + 1,
    oldest: { version: oldest, publishedAt: oldestAt },
    // Versions that an earlier program published are not counted.
    bytes: Math.max(0, replaced - replacedBefore),
  };
}

/**
 * Counts jobs by state. All unfinished jobs are counted, but ended jobs only if they are among the newest `among` jobs.
 * `complete` is false if ended jobs may have been left out.
 */
export async function counts(
  view: View,
  { teamId, workflowId, among }: { teamId: string; workflowId?: string; among: number },
): Promise<{ states: Partial<Record<JobState, number>>; complete: boolean }> {
  type Counted = { state: JobState; count: number };
  const [newestFrom, which, whose] =
    workflowId === undefined
      ? ['where', 'team_id = $1', [teamId]]
      : [
          '/* use job_history */ where finished_at is not null and',
          'team_id = $1 and workflow_id = $2',
          [teamId, workflowId],
        ];
  const [unfinished, newest] = await Promise.all([
    view.db.all<Counted>(
      `select state, count(*) as count from job /* use job_slot */ where ${which} and ${UNFINISHED} group by state`,
      ...whose,
    ),
    view.db.all<Counted>(
      `select state, count(*) as count from
         (select state from job ${newestFrom} ${which} order by id desc limit $${whose.length + 1}) as newest
       group by state`,
      ...whose,
      among,
    ),
  ]);
  const seen = newest.reduce((sum, { count }) => sum + count, 0);
  const ended = newest.filter(({ state }) => hasEnded(state));
  const states = Object.fromEntries([...unfinished, ...ended].map(({ state, count }) => [state, count]));
  return { states, complete: seen < among };
}

/** Maximum number of workflows per call. */
const WORKFLOWS_AT_ONCE = 100;

/**
 * Deletes a team's ended jobs, with their logs, that are older than `keepMs` or not among the newest `keepJobs` jobs of
 * their workflow. The newest ended job of each workflow is kept. Deletes at most `limit` jobs per call; call with
 * `after: next` until `done`. `next` is the last workflow whose jobs were pruned completely.
 */
export async function prune(
  tx: Tx,
  input: Keep & { teamId: string; limit: number; after?: string | undefined },
): Promise<{ done: boolean; next?: string }> {
  const { teamId, after = '' } = input;
  const workflows = await tx.db.all<{ id: string }>`
    select id from workflow where team_id = ${teamId} and id > ${after} order by id limit ${WORKFLOWS_AT_ONCE}`;
  const room = { jobs: input.limit, bytes: MAX_BATCH_BYTES };
  let next = after;
  for (const { id: workflowId } of workflows) {
    // The query selects one more job than may be deleted, to find out whether any are left.
    const old = await prunable(tx, { teamId, workflowId }, { ...input, limit: room.jobs + 1 });
    if ((await deleteFirst(tx, teamId, old, room)) < old.length) return { done: false, next };
    next = workflowId;
  }
  return workflows.length < WORKFLOWS_AT_ONCE ? { done: true } : { done: false, next };
}

interface Keep {
  keepJobs: number;
  keepMs: number;
}

const BEYOND_KEPT = `
  select id from job /* use job_history */
  where team_id = $1 and workflow_id = $2 and finished_at is not null order by id desc limit 1 offset $5`;
// `(id || '')` keeps the planners from searching by this bound. Searching by the first bound (`id <=`) is better,
// because it often leaves no rows.
const PRUNABLE = `
  select id from job /* use job_history */
  where team_id = $1 and workflow_id = $2 and finished_at is not null
    and id <= greatest($4, coalesce((${BEYOND_KEPT}), ''))
    and (finished_at <= $3 or id <= (${BEYOND_KEPT}))
    and (id || '') < (select id from job /* use job_history */
                      where team_id = $1 and workflow_id = $2 and finished_at is not null
                      order by id desc limit 1)
    and not exists (select 1 from idempotency
                    where team_id = $1 and operation in ('jobs.enqueue', 'jobs.begin') and target = $2
                      and result_id = job.id and idempotency.created_at > $6)
  order by id limit $7`;

/**
 * Returns the oldest jobs that may be deleted. A job to which an idempotency key refers is kept until the key expires.
 * The first bound on `id` excludes jobs that cannot be older than `keepMs` and are among the newest `keepJobs`. Without
 * this bound, a round over 100,000 jobs that are all kept occupied SQLite's writer for 1.6 s each minute.
 */
async function prunable(
  tx: Tx,
  { teamId, workflowId }: WorkflowRef,
  { keepJobs, keepMs, limit }: Keep & { limit: number },
): Promise<string[]> {
  const before = tx.now - keepMs;
  const rows = await tx.db.all<{ id: string }>(
    PRUNABLE,
    teamId,
    workflowId,
    before,
    idsBetween('job', { until: before }).end,
    keepJobs,
    tx.now - REMEMBERED_MS,
    limit,
  );
  return rows.map(({ id }) => id);
}

/** Deletes the first of these jobs, with their logs, until `room` is used up. Returns the number of deleted jobs. */
async function deleteFirst(
  tx: Tx,
  teamId: string,
  ids: readonly string[],
  room: { jobs: number; bytes: number },
): Promise<number> {
  if (ids.length === 0) return 0;
  const logs = await tx.db.all<{ id: string; bytes: number }>`
    select job_id as id, sum(bytes) as bytes from job_log where team_id = ${teamId}
      and job_id = any(${ids}::text[])
    group by job_id`;
  const sizes = new Map(logs.map(({ id, bytes }) => [id, bytes]));
  const end = ids.findIndex((id) => {
    if (room.jobs <= 0 || room.bytes <= 0) return true;
    room.jobs -= 1;
    room.bytes -= sizes.get(id) ?? 0;
    return false;
  });
  const first = end === -1 ? ids : ids.slice(0, end);
  await Promise.all([
    tx.db.run`delete from job_log where team_id = ${teamId} and job_id = any(${first}::text[])`,
    tx.db.run`delete from job where team_id = ${teamId} and id = any(${first}::text[])`,
  ]);
  return first.length;
}
