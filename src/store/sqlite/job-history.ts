/** Listing jobs, and pruning old ones. */
import { hasEnded, type Job, type JobOrigin, type JobState } from '../../model/job.ts';
import { idsBetween } from '../id-period.ts';
import { REMEMBERED_MS } from '../idempotent-call.ts';
import type { JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { MAX_BATCH_BYTES } from './stage.ts';
import type { Tx, View } from './transaction.ts';

type ListInput = Parameters<JobOperations['list']>[0];

// Ids grow with time: their order is that of creation.
const FILTERED = `
  and id >= ? and id < ? and created_at between ? and ?
  and (? is null or state in (select value from json_each(?)))
  and (? is null or origin = ?)
  order by id desc limit ?`;
const OF_A_WORKFLOW = `select * from job indexed by job_history where team_id = ? and workflow_id = ? ${FILTERED}`;
const OF_A_TEAM = `select * from job where team_id = ? ${FILTERED}`;
const OF_AN_ORIGIN = `select * from job indexed by job_origin where team_id = ? and origin = ? ${FILTERED}`;
// Few jobs are in these states: a search for them must not scan all finished ones.
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

/** The statement whose index reads the fewest rows, and its key columns after the team. */
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

/** How many workflows one call looks at. */
const WORKFLOWS_AT_ONCE = 100;

/** The last workflow that was pruned. */
export interface PruneCursor {
  teamId: string;
  workflowId: string;
}

export const PRUNE_START: PruneCursor = { teamId: '', workflowId: '' };

interface PruneInput {
  keepJobs: number;
  keepMs: number;
  limit: number;
  after: PruneCursor;
}

const BEYOND_KEPT = `
  select id from job indexed by job_history
  where team_id = ?1 and workflow_id = ?2 order by id desc limit 1 offset ?5`;
// The plus keeps the planner from using this range of `id`: by the first one it often finds nothing at once.
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

/** Prunes workflow by workflow; `next` is null at the end of a round through all. */
export function prune(tx: Tx, input: PruneInput): { next: PruneCursor | null } {
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
 * Oldest first. A job that an idempotency key still refers to stays until the key expires. The upper bound of `id`
 * excludes jobs that can be neither too old nor too many: without it a round through 100,000 jobs, all kept, took 1.6 s
 * of the writer each minute.
 */
function prunable(
  tx: Tx,
  { teamId, workflowId }: PruneCursor,
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

/** Returns the bytes of its log. */
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
