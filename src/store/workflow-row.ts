/** A workflow as it stands in the table, the same in every database. */
import type { RecordCounts } from '../model/job.ts';
import type { Definition, Workflow } from '../model/workflow.ts';

/** Records whose bytes are counted in the transaction of a publish, where nobody has counted them before. */
export const MAX_COUNTED = 5_000_000;

export interface WorkflowRow {
  team_id: string;
  id: string;
  definition: string;
  definition_hash: string;
  state: string | null;
  paused_at: number | null;
  archived_at: number | null;
  current_version: number;
  oldest_version: number;
  pruned_version: number;
  erasures: number;
  next_run_at: number | null;
  next_seq: number;
  staged_added: number;
  staged_changed: number;
  staged_removed: number;
  staged_largest: number;
  /** How many bytes of records there are more by what the run has written; negative when fewer. */
  staged_bytes: number;
  created_at: number;
  updated_at: number;
}

/** A schedule that has not changed keeps its time, unless nobody looked at it while the workflow was archived. */
export function nextRun(
  input: { definition: Definition; nextRunAt: number | null },
  stored: WorkflowRow | undefined,
): number | null {
  const { schedule } = input.definition;
  if (schedule === null) return null;
  if (stored === undefined || stored.archived_at !== null) return input.nextRunAt;
  const before = (JSON.parse(stored.definition) as Definition).schedule;
  return JSON.stringify(before) === JSON.stringify(schedule) ? stored.next_run_at : input.nextRunAt;
}

/** Without what may be long and is told by nobody: what a run left for the next one. */
export const LISTED = `team_id, id, definition, definition_hash, paused_at, archived_at, current_version, oldest_version,
  next_run_at, created_at, updated_at`;
export type ListedRow = Pick<
  WorkflowRow,
  | 'team_id'
  | 'id'
  | 'definition'
  | 'definition_hash'
  | 'paused_at'
  | 'archived_at'
  | 'current_version'
  | 'oldest_version'
  | 'next_run_at'
  | 'created_at'
  | 'updated_at'
>;

export function toWorkflow(row: ListedRow): Workflow {
  return {
    teamId: row.team_id,
    id: row.id,
    definition: JSON.parse(row.definition),
    definitionHash: row.definition_hash,
    pausedAt: row.paused_at,
    archivedAt: row.archived_at,
    currentVersion: row.current_version,
    oldestVersion: row.oldest_version,
    nextRunAt: row.next_run_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** From what was counted while it was written: counting the rows of a large run would hold up every writer. */
export function countRecords(workflow: WorkflowRow, before: number): RecordCounts {
  const { staged_added: added, staged_changed: changed, staged_removed: removed } = workflow;
  return { total: before + added - removed, added, changed, removed };
}

/** Likewise; `before` is null, and so is this, where nobody has counted the bytes of the version before. */
export function bytesAfter(workflow: WorkflowRow, before: number | null): number | null {
  return before === null ? null : before + workflow.staged_bytes;
}
