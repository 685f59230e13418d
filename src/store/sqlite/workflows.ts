/** Workflows: applying their definitions, looking them up, archiving and pausing them. */
import type { Workflow } from '../../model/workflow.ts';
import type { AppliedWorkflow, WorkflowOperations } from '../store.ts';
import {
  LISTED,
  type ListedRow,
  nextRun,
  toWorkflow,
  type WorkflowRow as WorkflowColumns,
} from '../workflow-row.ts';
import { requireRoom } from './quotas.ts';
import type { Tx, View } from './transaction.ts';

export interface WorkflowRow extends WorkflowColumns {
  /** Identifies the workflow in `record.workflow`. */
  number: number;
}

type Input<Name extends keyof WorkflowOperations> = Parameters<WorkflowOperations[Name]>[0];
type Result<Name extends keyof WorkflowOperations> = Awaited<ReturnType<WorkflowOperations[Name]>>;

export function apply(tx: Tx, input: Input<'apply'>): Result<'apply'> {
  const { teamId, id, hash, expectedHash } = input;
  const definition = JSON.stringify(input.definition);
  const stored = workflowRow(tx, teamId, id);
  if (
    expectedHash !== undefined &&
    (stored?.archived_at !== null || stored.definition_hash !== expectedHash)
  ) {
    return 'stale';
  }
  if (stored === undefined || stored.archived_at !== null) requireRoom(tx, teamId, 'workflows');
  if (stored === undefined) {
    tx.db.run(
      `insert into workflow (team_id, id, number, definition, definition_hash, next_run_at, created_at, updated_at)
       select ?, ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? from workflow`,
      teamId,
      id,
      definition,
      hash,
      nextRun(input, undefined),
      tx.now,
      tx.now,
    );
    return 'created';
  }
  if (stored.archived_at === null && stored.definition_hash === hash) return 'unchanged';
  tx.db.run(
    `update workflow set definition = ?, definition_hash = ?, next_run_at = ?, archived_at = null, updated_at = ?
     where team_id = ? and id = ?`,
    definition,
    hash,
    nextRun(input, stored),
    tx.now,
    teamId,
    id,
  );
  // Jobs that waited while it was archived may run again.
  park(tx, input);
  tx.touched.jobs = true;
  return stored.archived_at === null ? 'changed' : 'restored';
}

export function get(view: View, { teamId, id }: Input<'get'>): Workflow | undefined {
  const row = workflowRow(view, teamId, id);
  return row === undefined || row.archived_at !== null ? undefined : toWorkflow(row);
}

export function list(view: View, { teamId, after = '', limit }: Input<'list'>): Workflow[] {
  return view.db
    .all<ListedRow>(
      `select ${LISTED} from workflow indexed by workflow_listed
       where team_id = ? and id > ? and archived_at is null order by id limit ?`,
      teamId,
      after,
      limit,
    )
    .map(toWorkflow);
}

export function applied(view: View, { after, limit }: Input<'applied'>): AppliedWorkflow[] {
  return view.db
    .all<AppliedWorkflow>(
      `select team_id as teamId, id, definition_hash as definitionHash,
              json_extract(definition, '$.source.type') as sourceType
       from workflow indexed by workflow_listed
       where (team_id, id) > (?, ?) and archived_at is null order by team_id, id limit ?`,
      after?.teamId ?? '',
      after?.id ?? '',
      limit,
    )
    .map((row) => ({ ...row }));
}

export function archive(tx: Tx, { teamId, ids }: Input<'archive'>): number {
  const archived = tx.db.run(
    `update workflow set archived_at = ?, updated_at = ?
     where team_id = ? and archived_at is null and id in (select value from json_each(?))`,
    tx.now,
    tx.now,
    teamId,
    JSON.stringify(ids),
  );
  for (const id of ids) park(tx, { teamId, id });
  return archived;
}

export function pause(tx: Tx, at: Input<'pause'>): Workflow | undefined {
  const paused = tx.db.run(
    `update workflow set paused_at = ?, updated_at = ?
     where team_id = ? and id = ? and paused_at is null and archived_at is null`,
    tx.now,
    tx.now,
    at.teamId,
    at.id,
  );
  if (paused > 0) park(tx, at);
  else tx.repeated = true;
  return get(tx, at);
}

export function resume(tx: Tx, { nextRunAt, ...at }: Input<'resume'>): Workflow | undefined {
  const resumed = tx.db.run(
    `update workflow
     set paused_at = null, updated_at = ?,
         next_run_at = iif(json_extract(definition, '$.schedule') is null, null, ?)
     where team_id = ? and id = ? and paused_at is not null and archived_at is null`,
    tx.now,
    nextRunAt,
    at.teamId,
    at.id,
  );
  if (resumed > 0) {
    park(tx, at);
    tx.touched.jobs = true;
  } else tx.repeated = true;
  return get(tx, at);
}

/**
 * Sets `parked` on the workflow's unfinished jobs (two at most) according to whether it is paused or archived. Parked
 * jobs are not in the index that claims read, so that no claim has to step over them.
 */
function park(tx: Tx, { teamId, id }: { teamId: string; id: string }): void {
  tx.db.run(
    `update job indexed by job_slot
     set parked = (select paused_at is not null or archived_at is not null from workflow
                   where workflow.team_id = job.team_id and workflow.id = job.workflow_id)
     where team_id = ? and workflow_id = ? and finished_at is null`,
    teamId,
    id,
  );
}

/** The row, archived or not. */
export function workflowRow(view: View, teamId: string, id: string): WorkflowRow | undefined {
  return view.db.get<WorkflowRow>('select * from workflow where team_id = ? and id = ?', teamId, id);
}
