/** Many jobs at once: lists, overviews of the newest and of the states, and deleting old ones. */
import { hasEnded, type Job, type JobState } from '../../model/job.ts';
import { idsBetween } from '../id-period.ts';
import { REMEMBERED_MS } from '../idempotent-call.ts';
import type { JobGlance, JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import type { Tx, Value, View } from '../sql.ts';
import { MAX_BATCH_BYTES } from './sweep.ts';
import { UNFINISHED } from './unfinished.ts';

type Input<Name extends 'list' | 'recent' | 'counts' | 'prune'> = Parameters<JobOperations[Name]>[0];

/** Newest first: ids grow with time, so their order is the order of creation. */
export async function list(view: View, input: Input<'list'>): Promise<Job[]> {
  const { teamId, workflowId, states, origin, limit } = input;
  const { first, end, since, until } = idsBetween('job', input);
  const values: Value[] = [teamId, first, end, since, until, limit];
  const given = (condition: string, value: Value | undefined) =>
    value === undefined ? '' : `and ${condition.replace('?', `$${values.push(value)}`)}`;
  const rows = await view.db.all<JobRow>(
    `select * from job ${indexFor(input)}
     where team_id = $1 and id >= $2 and id < $3 and created_at between $4 and $5 ${ofRareStates(states)}
       ${given('workflow_id = ?', workflowId)} ${given('origin = ?', origin)} ${given('state = any(?)', states)}
     order by id desc limit $6`,
    ...values,
  );
  return rows.map(toJob);
}

/** The index in which SQLite reads the fewest rows. */
function indexFor({ workflowId, states, origin }: Input<'list'>): string {
  if (workflowId !== undefined) return '/* use job_history */';
  if (states !== undefined && !states.some(hasEnded)) return '/* use job_slot */';
  if (states?.every(isUnsuccessful)) return '/* use job_unsuccessful */';
  return origin === undefined ? '' : '/* use job_origin */';
}

/** The condition of a partial index, where the wanted states are rare: the search then does not read all jobs. */
function ofRareStates(states: readonly JobState[] | undefined): string {
  if (states === undefined) return '';
  if (!states.some(hasEnded)) return `and ${UNFINISHED}`;
  return states.every(isUnsuccessful) ? `and state in ('failed', 'canceled')` : '';
}

const isUnsuccessful = (state: JobState) => state === 'failed' || state === 'canceled';

// One short search of the index for each workflow.
const RECENT = {
  sqlite: `
    select workflow_id as "workflowId", job.id, state, created_at as "createdAt", started_at as "startedAt",
           finished_at as "finishedAt"
    from json_each($2) wanted cross join job
    where team_id = $1 and job.id in
      (select id from job indexed by job_history
       where team_id = $1 and workflow_id = wanted.value order by id desc limit $3)
    order by workflow_id, job.id desc`,
  postgres: `
    select wanted.id as "workflowId", newest.*
    from unnest($2::text[]) as wanted (id) cross join lateral (
      select id, state, created_at as "createdAt", started_at as "startedAt", finished_at as "finishedAt"
      from job where team_id = $1 and workflow_id = wanted.id order by job.id desc limit $3
    ) newest
    order by wanted.id, newest.id desc`,
};

export async function recent(
  view: View,
  { teamId, workflowIds, each }: Input<'recent'>,
): Promise<Map<string, JobGlance[]>> {
  const rows = await view.db.all<JobGlance & { workflowId: string }>(RECENT, teamId, workflowIds, each);
  return Map.groupBy(rows, ({ workflowId }) => workflowId);
}

export async function counts(
  view: View,
  { teamId, workflowId, among }: Input<'counts'>,
): Promise<{ states: Partial<Record<JobState, number>>; complete: boolean }> {
  type Counted = { state: JobState; count: number };
  const [index, which, whose] =
    workflowId === undefined
      ? ['', 'team_id = $1', [teamId]]
      : ['/* use job_history */', 'team_id = $1 and workflow_id = $2', [teamId, workflowId]];
  const [unfinished, newest] = await Promise.all([
    view.db.all<Counted>(
      `select state, count(*) as count from job /* use job_slot */ where ${which} and ${UNFINISHED} group by state`,
      ...whose,
    ),
    view.db.all<Counted>(
      `select state, count(*) as count from
         (select state from job ${index} where ${which} order by id desc limit $${whose.length + 1}) as newest
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

/** How many workflows one call looks at. */
const WORKFLOWS_AT_ONCE = 100;

/** The cursor of the pruning: it goes on behind this workflow. */
interface PrunePlace {
  teamId: string;
  workflowId: string;
}

/** Before the first. */
export const PRUNE_START: PrunePlace = { teamId: '', workflowId: '' };

type PruneInput = Input<'prune'> & { after: PrunePlace };

/** Goes from workflow to workflow; `next` is null at the end of a round. */
export async function prune(tx: Tx, input: PruneInput): Promise<{ next: PrunePlace | null }> {
  const workflows = await tx.db.all<PrunePlace>(
    `select team_id as "teamId", id as "workflowId" from workflow
     where (team_id, id) > ($1, $2) order by team_id, id limit $3`,
    input.after.teamId,
    input.after.workflowId,
    WORKFLOWS_AT_ONCE,
  );
  const room = { jobs: input.limit, bytes: MAX_BATCH_BYTES };
  let next = input.after;
  for (const workflow of workflows) {
    // One more than may be deleted, to see whether some are left.
    const old = await prunable(tx, workflow, { ...input, limit: room.jobs + 1 });
    if ((await deleteFirst(tx, workflow.teamId, old, room)) < old.length) return { next };
    next = workflow;
  }
  return { next: workflows.length < WORKFLOWS_AT_ONCE ? null : next };
}

const BEYOND_KEPT = `
  select id from job /* use job_history */
  where team_id = $1 and workflow_id = $2 order by id desc limit 1 offset $5`;
// The planners must not use the range of `(id || '')`: by the first one they often find nothing at once.
const PRUNABLE = `
  select id from job /* use job_history */
  where team_id = $1 and workflow_id = $2 and state in ('finished', 'failed', 'canceled')
    and id <= greatest($4, coalesce((${BEYOND_KEPT}), ''))
    and (finished_at <= $3 or id <= (${BEYOND_KEPT}))
    and (id || '') < (select id from job /* use job_history */
                      where team_id = $1 and workflow_id = $2 and state in ('finished', 'failed', 'canceled')
                      order by id desc limit 1)
    and not exists (select 1 from idempotency
                    where team_id = $1 and operation in ('jobs.enqueue', 'jobs.begin') and target = $2
                      and result_id = job.id and idempotency.created_at > $6)
  order by id limit $7`;

/**
 * The oldest first. A job that an idempotency key still refers to stays until the key expires. The upper bound of `id`
 * excludes jobs that can be neither too old nor too many: without it a round through 100,000 jobs, all kept, took 1.6 s
 * of SQLite's writer each minute.
 */
async function prunable(
  tx: Tx,
  { teamId, workflowId }: PrunePlace,
  { keepJobs, keepMs, limit }: Input<'prune'>,
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

/** Deletes jobs of a team, with their logs, until there is no more room; returns how many. */
async function deleteFirst(
  tx: Tx,
  teamId: string,
  ids: readonly string[],
  room: { jobs: number; bytes: number },
): Promise<number> {
  if (ids.length === 0) return 0;
  const logs = await tx.db.all<{ id: string; bytes: number }>(
    `select job_id as id, sum(bytes) as bytes from job_log where team_id = $1 and job_id = any($2::text[])
     group by job_id`,
    teamId,
    ids,
  );
  const sizes = new Map(logs.map(({ id, bytes }) => [id, bytes]));
  const end = ids.findIndex((id) => {
    if (room.jobs <= 0 || room.bytes <= 0) return true;
    room.jobs -= 1;
    room.bytes -= sizes.get(id) ?? 0;
    return false;
  });
  const first = end === -1 ? ids : ids.slice(0, end);
  await Promise.all([
    tx.db.run('delete from job_log where team_id = $1 and job_id = any($2::text[])', teamId, first),
    tx.db.run('delete from job where team_id = $1 and id = any($2::text[])', teamId, first),
  ]);
  return first.length;
}
