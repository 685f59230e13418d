/**
 * Locks what the calls of a batch begin with, and reads it: three statements for all of them, where each call would
 * need two of its own. What is locked by somebody else is skipped, so that a batch waits for nobody: that call has to
 * wait by itself. Two batches cannot wait for each other either.
 */
import type { JobRow } from '../job-row.ts';
import type { Begins } from '../operation.ts';
import { UNFINISHED } from '../operations/unfinished.ts';
import type { Locked, Tx } from '../sql.ts';
import type { WorkflowRow } from '../workflow-row.ts';

/**
 * What each call may use, in their order. Undefined for a call whose rows are locked by others, or do not exist; of
 * several calls of one workflow, only the first gets anything, because it may change what the others would find.
 */
export async function lockCalls(
  tx: Tx,
  teamId: string,
  calls: readonly Begins[],
): Promise<(Locked | undefined)[]> {
  const jobIds = calls.flatMap(({ jobId }) => jobId ?? []);
  const workflowIds = calls.flatMap(({ workflowId }) => workflowId ?? []);
  const [workflows, jobs, unfinished] = await Promise.all([
    jobIds.length + workflowIds.length === 0
      ? []
      : tx.db.all<WorkflowRow>(WORKFLOWS, teamId, workflowIds, jobIds),
    jobIds.length === 0 ? [] : tx.db.all<JobRow>(JOBS, teamId, jobIds),
    workflowIds.length === 0 ? [] : tx.db.all<JobRow>(UNFINISHED_JOBS, teamId, workflowIds),
  ]);
  const left = new Map(workflows.map((row) => [row.id, row]));
  const jobsById = new Map(jobs.map((row) => [row.id, row]));
  const unfinishedOf = Map.groupBy(unfinished, (row) => row.workflow_id);
  return calls.map(({ workflowId, jobId }) => {
    if (workflowId === undefined && jobId === undefined) return {};
    const job = jobsById.get(jobId ?? '');
    const id = workflowId ?? job?.workflow_id ?? '';
    const workflow = left.get(id);
    if (workflow === undefined) return undefined;
    left.delete(id);
    return job === undefined ? { workflow, unfinished: unfinishedOf.get(id) ?? [] } : { workflow, job };
  });
}

// `array(…)`, so that the planner sees a list of ids and uses the primary key.
const WORKFLOWS = `
  select * from workflow
  where team_id = $1 and id = any(array(
    select unnest($2::text[]) union all
    select job.workflow_id from unnest($3::text[]) as named (id)
    cross join lateral (select * from job where job.team_id = $1 and job.id = named.id limit 1) job
  ))
  for update skip locked`;

// One look-up for each id. With a list, a plan that is kept could read all unfinished jobs of the team.
const JOBS = `
  select job.* from unnest($2::text[]) as named (id)
  cross join lateral (
    select * from job where job.team_id = $1 and job.id = named.id limit 1 for update skip locked
  ) job`;

const UNFINISHED_JOBS = `
  select job.* from unnest($2::text[]) as named (id)
  cross join lateral (
    select * from job where job.team_id = $1 and job.workflow_id = named.id and ${UNFINISHED} order by slot limit 2
  ) job`;
