/** Schedules: which workflows are due to run, and advancing them to their next time. */
import type { Schedule } from '../../model/workflow.ts';
import type { DueSchedule, ScheduleOperations } from '../job-operations.ts';
import { enqueue } from './jobs.ts';
import type { Tx, View } from './transaction.ts';

type FireInput = Parameters<ScheduleOperations['fire']>[0];

/** Uses the partial index `workflow_next_run`, whose condition it repeats. */
export function due(view: View, { limit }: { limit: number }): DueSchedule[] {
  return view.db
    .all<ScheduleRow>(`${SCHEDULES} and next_run_at <= ? order by next_run_at limit ?`, view.now, limit)
    .map(toSchedule);
}

export function ahead(
  view: View,
  { after, limit }: Parameters<ScheduleOperations['ahead']>[0],
): DueSchedule[] {
  return view.db
    .all<ScheduleRow>(
      `${SCHEDULES} and next_run_at > ? and (team_id, id) > (?, ?) order by team_id, id limit ?`,
      view.now,
      after?.teamId ?? '',
      after?.workflowId ?? '',
      limit,
    )
    .map(toSchedule);
}

interface ScheduleRow {
  team_id: string;
  id: string;
  next_run_at: number;
  schedule: string;
}

const SCHEDULES = `
  select team_id, id, next_run_at, json_extract(definition, '$.schedule') as schedule from workflow
  where next_run_at is not null and paused_at is null and archived_at is null`;

function toSchedule(row: ScheduleRow): DueSchedule {
  return {
    teamId: row.team_id,
    workflowId: row.id,
    schedule: JSON.parse(row.schedule) as Schedule,
    dueAt: row.next_run_at,
  };
}

/** Compare-and-set: whoever advances the time also queues the job. */
export function fire(tx: Tx, input: FireInput): Awaited<ReturnType<ScheduleOperations['fire']>> {
  const { teamId, workflowId, dueAt, nextAt, run, trace = null } = input;
  const moved = tx.db.run(
    `update workflow set next_run_at = ?
     where team_id = ? and id = ? and next_run_at = ? and paused_at is null and archived_at is null`,
    nextAt,
    teamId,
    workflowId,
    dueAt,
  );
  if (moved === 0) return { outcome: 'taken', job: null };
  if (!run) return { outcome: 'skipped', job: null };
  const queued = enqueue(tx, { teamId, workflowId, origin: 'schedule', idempotencyKey: null, trace });
  if (queued.outcome === 'queued') return { outcome: 'queued', job: queued.job };
  if (queued.outcome === 'occupied') return { outcome: 'coalesced', job: queued.job };
  return { outcome: 'skipped', job: null };
}
