/** Jobs as a list, and giving up old ones. */
import { hasEnded, type Job, type JobOrigin, type JobState } from '../../model/job.ts';
import { idsBetween } from '../id-period.ts';
import { REMEMBERED_MS } from '../idempotent-call.ts';
import type { JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { MAX_BATCH_BYTES } from './stage.ts';
import type { Tx, View } from './transaction.ts';

type ListInput = Parameters<JobOperations['list']>[0];

// Ids grow with time, so that their order is that in which the jobs were made.
const FILTERED = `
  and id >= ? and id < ? and created_at between ? and ?
  and (? is null or state in (select value from json_each(?)))
  and (? is null or origin = ?)
  order by id desc limit ?`;
const OF_A_WORKFLOW = `select * from job indexed by job_history where team_id = ? and workflow_id = ? ${FILTERED}`;
const OF_A_TEAM = `select * from job where team_id = ? ${FILTERED}`;
const OF_AN_ORIGIN = `select * from job indexed by job_origin where team_id = ? and origin = ? ${FILTERED}`;
// Few jobs are in these states: a search for them must not go through all that have finished.
const UNFINISHED = `
  select * from job indexed by job_slot
  where team_id = ? and finished_at is null ${FILTERED}`;
const UNSUCCESSFUL = `
  select * from job indexed by job_unsuccessful where team_id = ? and state in ('failed', 'canceled') ${FILTERED}`;

export function list(view: View, input: ListInput): Job[] {
  const { teamId, workflowId, states, origin = null, limit } = input;
  const { first, end, since, until } = idsBetween('job', input);
  const inStates = states === undefined ? null : JSON.stringify(states);
  const [statement, narrowed] = statementFor({ workflowId, states, origin });
  return view.db
    .all<JobRow>(
      statement,
      teamId,
      ...narrowed,
      first,
      end,
      since,
      until,
      inStates,
      inStates,
      origin,
      origin,
      limit,
    )
    .map(toJob);
}

/** By the index that leads through the fewest, with what it is searched for beside the team. */
function statementFor(filter: {
  workflowId: string | undefined;
  states: readonly JobState[] | undefined;
  origin: JobOrigin | null;
}): [statement: string, narrowed: string[]] {
  const { workflowId, states, origin } = filter;
  if (workflowId !== undefined) return [OF_A_WORKFLOW, [workflowId]];
  if (states !== undefined && !states.some(hasEnded)) return [UNFINISHED, []];
  if (states?.every((state) => state === 'failed' || state === 'canceled')) return [UNSUCCESSFUL, []];
  return origin === null ? [OF_A_TEAM, []] : [OF_AN_ORIGIN, [origin]];
}

/** Workflows that one call looks at. */
const WORKFLOWS_AT_ONCE = 100;

/** Where a pruning goes on: behind this workflow. */
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

const BEYOND_KEPT = `
  select id from job indexed by job_history
  where team_id = ?1 and workflow_id = ?2 order by id desc limit 1 offset ?5`;
// The plus keeps the planner from walking up to the newest: where the first range is empty, nothing else is asked.
const PRUNABLE = `
  select id from job indexed by job_history
  where team_id = ?1 and workflow_id = ?2 and state in ('finished', 'failed', 'canceled')
    and id <= max(?4, coalesce((${BEYOND_KEPT}), ''))
    and (finished_at <= ?3 or id <= (${BEYOND_KEPT}))
    and +id < (select id from job indexed by job_history
               where team_id = ?1 and workflow_id = ?2 and state in ('finished', 'failed', 'canceled')
               order by id desc limit 1)
    and not exists (select 1 from idempotency
                    where team_id = ?1 and operation in ('jobs.enqueue', 'jobs.begin') and target = ?2
                      and result_id = job.id and idempotency.created_at > ?6)
  order by id limit ?7`;

/** Goes from workflow to workflow; `next` is null at the end of a round. */
export function prune(tx: Tx, input: PruneInput): { next: PrunePlace | null } {
  const workflows = tx.db.all<{ team_id: string; id: string }>(
    'select team_id, id from workflow where (team_id, id) > (?, ?) order by team_id, id limit ?',
    input.after.teamId,
    input.after.workflowId,
    WORKFLOWS_AT_ONCE,
  );
  const room = { jobs: input.limit, bytes: MAX_BATCH_BYTES };
  let done = input.after;
  for (const { team_id: teamId, id: workflowId } of workflows) {
    const at = { teamId, workflowId };
    for (const job of prunable(tx, at, { ...input, limit: room.jobs + 1 })) {
      if (room.jobs <= 0 || room.bytes <= 0) return { next: done };
      room.jobs -= 1;
      room.bytes -= deleteJob(tx, teamId, job);
    }
    done = at;
  }
  return { next: workflows.length < WORKFLOWS_AT_ONCE ? null : done };
}

/**
 * The oldest first. A job that an idempotency key still answers stays until the key is forgotten. Ids grow with time, so
 * that none is looked at which is neither old enough by its id nor beyond what is kept: with 100,000 jobs, all kept, a
 * round of all workflows took 1.6 s of the writer without that, each minute.
 */
function prunable(
  tx: Tx,
  { teamId, workflowId }: PrunePlace,
  { keepJobs, keepMs, limit }: { keepJobs: number; keepMs: number; limit: number },
): string[] {
  const before = tx.now - keepMs;
  return tx.db
    .all<{ id: string }>(
      PRUNABLE,
      teamId,
      workflowId,
      before,
      idsBetween('job', { until: before }).end,
      keepJobs,
      tx.now - REMEMBERED_MS,
      limit,
    )
    .map(({ id }) => id);
}

/** Answers how many bytes that were. */
function deleteJob(tx: Tx, teamId: string, id: string): number {
  const { bytes } = tx.db.get<{ bytes: number }>(
    'select coalesce(sum(bytes), 0) as bytes from job_log where team_id = ? and job_id = ?',
    teamId,
    id,
  ) ?? { bytes: 0 };
  tx.db.run('delete from job_log where team_id = ? and job_id = ?', teamId, id);
  tx.db.run('delete from job where team_id = ? and id = ?', teamId, id);
  return bytes;
}
