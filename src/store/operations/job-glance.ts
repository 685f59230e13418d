/** Overviews of many jobs: the newest few of each workflow, and how many are in each state. */
import { hasEnded, type JobState } from '../../model/job.ts';
import type { JobGlance, JobOperations } from '../job-operations.ts';
import type { View } from '../sql.ts';
import { UNFINISHED } from './unfinished.ts';

type Input<Name extends 'recent' | 'counts'> = Parameters<JobOperations[Name]>[0];

export async function recent(
  view: View,
  { teamId, workflowIds, each }: Input<'recent'>,
): Promise<Map<string, JobGlance[]>> {
  const rows = await view.db.all<JobGlance & { workflowId: string }>(
    `select wanted.id as "workflowId", newest.*
     from unnest($2::text[]) as wanted (id) cross join lateral (
       select id, state, created_at as "createdAt", started_at as "startedAt", finished_at as "finishedAt"
       from job where team_id = $1 and workflow_id = wanted.id order by job.id desc limit $3
     ) newest
     order by wanted.id, newest.id desc`,
    teamId,
    workflowIds,
    each,
  );
  return Map.groupBy(rows, ({ workflowId }) => workflowId);
}

export async function counts(
  view: View,
  { teamId, workflowId, among }: Input<'counts'>,
): Promise<{ states: Partial<Record<JobState, number>>; complete: boolean }> {
  type Counted = { state: JobState; count: number };
  const [unfinished, newest] = await Promise.all([
    view.db.all<Counted>(
      `select state, count(*) as count from job
       where team_id = $1 and ($2::text is null or workflow_id = $2) and ${UNFINISHED}
       group by state`,
      teamId,
      workflowId ?? null,
    ),
    view.db.all<Counted>(
      `select state, count(*) as count from
         (select state from job where team_id = $1 and ($2::text is null or workflow_id = $2)
          order by id desc limit $3) as newest
       group by state`,
      teamId,
      workflowId ?? null,
      among,
    ),
  ]);
  const seen = newest.reduce((sum, { count }) => sum + count, 0);
  const ended = newest.filter(({ state }) => hasEnded(state));
  const states = Object.fromEntries([...unfinished, ...ended].map(({ state, count }) => [state, count]));
  return { states, complete: seen < among };
}
