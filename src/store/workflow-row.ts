/** The row of a workflow in the database, and its mapping to the model. */

import type { Workflow } from '../model/workflow.ts';
import { Part } from './sql.ts';

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
  /** By how many bytes the run's writes grow the records; negative if they shrink. */
  staged_bytes: number;
  created_at: number;
  updated_at: number;
}

/** All columns that `toWorkflow` needs; without `state`, which may be long. */
export const LISTED =
  new Part(`team_id, id, definition, definition_hash, paused_at, archived_at, current_version, oldest_version,
  next_run_at, created_at, updated_at`);
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
