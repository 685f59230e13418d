/** Overviews of jobs: the newest few of each workflow, and how many are in each state. */
import { hasEnded, type JobState } from '../../model/job.ts';
import type { JobGlance, JobOperations } from '../job-operations.ts';
import type { View } from './transaction.ts';

type Input<Name extends 'recent' | 'counts'> = Parameters<JobOperations[Name]>[0];

const RECENT = `
  select job.workflow_id as workflowId, job.id, job.state, job.created_at as createdAt, job.started_at as startedAt,
         job.finished_at as finishedAt
  from json_each(?) wanted cross join job
  where job.team_id = ? and job.id in
    (select id from job indexed by job_history where team_id = ? and workflow_id = wanted.value order by id desc limit ?)
  order by job.workflow_id, job.id desc`;

export function recent(view: View, { teamId, workflowIds, each }: Input<'recent'>): Map<string, JobGlance[]> {
  const rows = view.db.all<JobGlance & { workflowId: string }>(
    RECENT,
    JSON.stringify(workflowIds),
    teamId,
    teamId,
    each,
  );
  return Map.groupBy(
    rows.map((row) => ({ ...row })),
    ({ workflowId }) => workflowId,
  );
}

const OF_A_TEAM = 'job where team_id = ?';
const OF_A_WORKFLOW = 'job indexed by job_history where team_id = ? and workflow_id = ?';

export function counts(
  view: View,
  { teamId, workflowId, among }: Input<'counts'>,
): { states: Partial<Record<JobState, number>>; complete: boolean } {
  const whose = workflowId === undefined ? [teamId] : [teamId, workflowId];
  const of = workflowId === undefined ? '' : 'and workflow_id = ?';
  const unfinished = view.db.all<{ state: JobState; count: number }>(
    `select state, count(*) as count from job indexed by job_slot
     where team_id = ? ${of} and finished_at is null group by state`,
    ...whose,
  );
  const newest = view.db.all<{ state: JobState; count: number }>(
    `select state, count(*) as count from
       (select state from ${workflowId === undefined ? OF_A_TEAM : OF_A_WORKFLOW} order by id desc limit ?)
     group by state`,
    ...whose,
    among,
  );
  const seen = newest.reduce((sum, { count }) => sum + count, 0);
  const ended = newest.filter(({ state }) => hasEnded(state));
  const states = Object.fromEntries([...unfinished, ...ended].map(({ state, count }) => [state, count]));
  return { states, complete: seen < among };
}
