/** The row of a workflow in the database, and its mapping to the model; the same for both drivers. */
import type { RecordCounts } from '../model/job.ts';
import type { Definition, Workflow } from '../model/workflow.ts';

/** How many records at most a publish counts the bytes of, if the version before has no count. */
export const MAX_COUNTED = 5_000_000;

export interface WorkflowRow {
  team_id: string;
  id: string;
  /** What `record.workflow` calls it, on SQLite alone. */
  number?: number;
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
  /** By how many bytes the run's writes grow the records; negative if they shrink. */
  staged_bytes: number;
  created_at: number;
  updated_at: number;
}

/** The next run after applying a definition: an unchanged schedule keeps its time, unless the workflow was archived. */
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

/** All columns that `toWorkflow` needs; without `state`, which may be long. */
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

/** From the counters kept while staging: counting the rows of a large run would block every write. */
export function countRecords(workflow: WorkflowRow, before: number): RecordCounts {
  const { staged_added: added, staged_changed: changed, staged_removed: removed } = workflow;
  return { total: before + added - removed, added, changed, removed };
}

/** Likewise; null if `before`, the bytes of the previous version, has not been counted. */
export function bytesAfter(workflow: WorkflowRow, before: number | null): number | null {
  return before === null ? null : before + workflow.staged_bytes;
}
