/** Schedules: finds the workflows whose next run is due, and queues it. */
import type { Job } from '../../model/job.ts';
import type { Definition, Schedule } from '../../model/workflow.ts';
import { Part, type Tx, type View } from '../sql.ts';
import { enqueue } from './jobs.ts';

export interface DueSchedule {
  teamId: string;
  workflowId: string;
  schedule: Schedule;
  dueAt: number;
}

/**
 * Due schedules, longest due first; without those of paused and archived workflows.
 *
 * Uses the index `workflow_next_run`, and so repeats its condition.
 */
export async function due(view: View, { limit }: { limit: number }): Promise<DueSchedule[]> {
  const rows = await view.db.all<ScheduleRow>`
    ${SCHEDULES} and next_run_at <= ${view.now} order by next_run_at limit ${limit}`;
  return rows.map(toSchedule);
}

/** Schedules that are not due yet, by team and workflow, behind one of them; without those of paused workflows. */
export async function ahead(
  view: View,
  { after, limit }: { after: { teamId: string; workflowId: string } | null; limit: number },
): Promise<DueSchedule[]> {
  const rows = await view.db.all<ScheduleRow>`
    ${SCHEDULES} and next_run_at > ${view.now} and (team_id,
      id) > (${after?.teamId ?? ''}, ${after?.workflowId ?? ''}) order by team_id, id limit ${limit}`;
  return rows.map(toSchedule);
}

interface ScheduleRow {
  team_id: string;
  id: string;
  next_run_at: number;
  definition: string;
}

const SCHEDULES = new Part(`
  select team_id, id, next_run_at, definition from workflow
  where next_run_at is not null and paused_at is null and archived_at is null`);

function toSchedule(row: ScheduleRow): DueSchedule {
  return {
    teamId: row.team_id,
    workflowId: row.id,
    schedule: (JSON.parse(row.definition) as Definition).schedule as Schedule,
    dueAt: row.next_run_at,
  };
}

/**
 * Compare-and-set of a schedule from `dueAt` to `nextAt`; with `run` it also queues a job of origin `schedule`. Of
 * several nodes one succeeds, the others get `taken`. `coalesced`: an unfinished job holds the slot.
 */
export async function fire(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string;
    dueAt: number;
    nextAt: number | null;
    run: boolean;
    trace?: string | null;
  },
): Promise<{ outcome: 'queued' | 'coalesced' | 'skipped' | 'taken'; job: Job | null }> {
  const { teamId, workflowId, dueAt, nextAt, run, trace = null } = input;
  const moved = await tx.db.run`
    update workflow set next_run_at = ${nextAt}
    where team_id = ${teamId} and id = ${workflowId} and next_run_at = ${dueAt} and paused_at is null
      and archived_at is null`;
  if (moved === 0) return { outcome: 'taken', job: null };
  if (!run) return { outcome: 'skipped', job: null };
  const queued = await enqueue(tx, { teamId, workflowId, origin: 'schedule', idempotencyKey: null, trace });
  if (queued.outcome === 'queued') return { outcome: 'queued', job: queued.job };
  if (queued.outcome === 'occupied') return { outcome: 'coalesced', job: queued.job };
  return { outcome: 'skipped', job: null };
}
