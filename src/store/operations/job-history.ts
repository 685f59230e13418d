/** Lists jobs, and deletes old ones. */
import { hasEnded, type Job, type JobState } from '../../model/job.ts';
import { idsBetween } from '../id-period.ts';
import { REMEMBERED_MS } from '../idempotent-call.ts';
import type { JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import type { Tx, View } from '../sql.ts';
import { UNFINISHED } from './unfinished.ts';

type ListInput = Parameters<JobOperations['list']>[0];

/** Newest first: ids grow with time, so their order is the order of creation. */
export async function list(view: View, input: ListInput): Promise<Job[]> {
  const { teamId, workflowId, states, origin, limit } = input;
  const { first, end, since, until } = idsBetween('job', input);
  const rows = await view.db.all<JobRow>(
    `select * from job
     where team_id = $1 and id < $2 and id >= $7
       and created_at between $8 and $9
       and ($3::text is null or workflow_id = $3) and ($4::text is null or origin = $4)
       and ($5::text[] is null or state = any($5)) ${conditionFor(states)}
     order by id desc limit $6`,
    teamId,
    end,
    workflowId ?? null,
    origin ?? null,
    states ?? null,
    limit,
    first,
    since,
    until,
  );
  return rows.map(toJob);
}

/** The condition of a partial index, where the wanted states are rare: the search then does not read all jobs. */
function conditionFor(states: readonly JobState[] | undefined): string {
  if (states === undefined) return '';
  if (!states.some(hasEnded)) return `and ${UNFINISHED}`;
  return states.every((state) => state === 'failed' || state === 'canceled')
    ? `and state in ('failed', 'canceled')`
    : '';
}

/** How many workflows one call looks at. */
const WORKFLOWS_AT_ONCE = 100;

/** The cursor of the pruning: it goes on behind this workflow. */
export interface PrunePlace {
  teamId: string;
  workflowId: string;
}

/** Before the first. */
export const PRUNE_START: PrunePlace = { teamId: '', workflowId: '' };

interface PruneInput {
  keepJobs: number;
  keepMs: number;
  limit: number;
  after: PrunePlace;
}

/** Goes from workflow to workflow; `next` is null at the end of a round. */
export async function prune(tx: Tx, input: PruneInput): Promise<{ next: PrunePlace | null }> {
  const workflows = await tx.db.all<{ team_id: string; id: string }>(
    'select team_id, id from workflow where (team_id, id) > ($1, $2) order by team_id, id limit $3',
    input.after.teamId,
    input.after.workflowId,
    WORKFLOWS_AT_ONCE,
  );
  // One more than may be deleted, to see whether some are left.
  const found = await prunable(tx, workflows, input);
  const jobs = found.slice(0, input.limit);
  await deleteJobs(tx, jobs);
  const rest = found[input.limit];
  if (rest !== undefined) {
    const place = workflows.findIndex(
      ({ team_id, id }) => team_id === rest.team_id && id === rest.workflow_id,
    );
    const done = workflows[place - 1];
    return { next: done === undefined ? input.after : { teamId: done.team_id, workflowId: done.id } };
  }
  const last = workflows.at(-1);
  if (last === undefined || workflows.length < WORKFLOWS_AT_ONCE) return { next: null };
  return { next: { teamId: last.team_id, workflowId: last.id } };
}

interface Prunable {
  team_id: string;
  workflow_id: string;
  id: string;
}

/**
 * Workflow by workflow, and of each the oldest first. A job that an idempotency key still refers to stays until the key
 * expires. Ids grow with time, so jobs that are neither old enough nor more than are kept are not read.
 */
function prunable(
  tx: Tx,
  workflows: readonly { team_id: string; id: string }[],
  { keepJobs, keepMs, limit }: PruneInput,
): Promise<Prunable[]> {
  return tx.db.all<Prunable>(
    `select workflow.team_id, workflow.id as workflow_id, old.id
     from unnest($1::text[], $2::text[]) as workflow (team_id, id)
     cross join lateral (
       select job.id from job
       where job.team_id = workflow.team_id and job.workflow_id = workflow.id
         and job.state in ('finished', 'failed', 'canceled')
         and job.id <= greatest($7, (select id from job newer
                                     where newer.team_id = workflow.team_id and newer.workflow_id = workflow.id
                                     order by newer.id desc limit 1 offset $4))
         and (job.finished_at <= $3
              or job.id <= (select id from job newer
                            where newer.team_id = workflow.team_id and newer.workflow_id = workflow.id
                            order by newer.id desc limit 1 offset $4))
         and job.id < (select id from job newest
                       where newest.team_id = workflow.team_id and newest.workflow_id = workflow.id
                         and newest.state in ('finished', 'failed', 'canceled')
                       order by newest.id desc limit 1)
         and not exists (select 1 from idempotency
                         where idempotency.team_id = workflow.team_id and operation in ('jobs.enqueue', 'jobs.begin')
                           and target = workflow.id and result_id = job.id and idempotency.created_at > $5)
       order by job.id limit $6
     ) old
     order by 1, 2, 3 limit $6`,
    workflows.map(({ team_id }) => team_id),
    workflows.map(({ id }) => id),
    tx.now - keepMs,
    keepJobs,
    tx.now - REMEMBERED_MS,
    limit + 1,
    idsBetween('job', { until: tx.now - keepMs }).end,
  );
}

async function deleteJobs(tx: Tx, jobs: readonly Prunable[]): Promise<void> {
  if (jobs.length === 0) return;
  const named = [jobs.map(({ team_id }) => team_id), jobs.map(({ id }) => id)] as const;
  await Promise.all([
    tx.db.run(
      `delete from job_log using unnest($1::text[], $2::text[]) as old (team_id, id)
       where job_log.team_id = old.team_id and job_log.job_id = old.id`,
      ...named,
    ),
    tx.db.run(
      `delete from job using unnest($1::text[], $2::text[]) as old (team_id, id)
       where job.team_id = old.team_id and job.id = old.id`,
      ...named,
    ),
  ]);
}
