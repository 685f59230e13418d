/** Workflows: their definitions and where their data stands. */
import type { Definition, Workflow } from '../../model/workflow.ts';
import type { Tx, View } from './transaction.ts';

export interface WorkflowRow {
  team_id: string;
  id: string;
  number: number;
  definition: string;
  definition_hash: string;
  state: string | null;
  paused_at: number | null;
  archived_at: number | null;
  current_version: number;
  oldest_version: number;
  pruned_version: number;
  erasures: number;
  next_seq: number;
  staged_added: number;
  staged_changed: number;
  staged_removed: number;
  staged_largest: number;
  created_at: number;
  updated_at: number;
}

export function apply(
  tx: Tx,
  input: { teamId: string; id: string; definition: Definition; hash: string },
): 'created' | 'changed' | 'unchanged' | 'restored' {
  const { teamId, id, hash } = input;
  const definition = JSON.stringify(input.definition);
  const stored = workflowRow(tx, teamId, id);
  if (stored === undefined) {
    tx.db.run(
      `insert into workflow (team_id, id, number, definition, definition_hash, created_at, updated_at)
       select ?, ?, coalesce(max(number), 0) + 1, ?, ?, ?, ? from workflow`,
      teamId,
      id,
      definition,
      hash,
      tx.now,
      tx.now,
    );
    return 'created';
  }
  if (stored.archived_at === null && stored.definition_hash === hash) return 'unchanged';
  tx.db.run(
    `update workflow set definition = ?, definition_hash = ?, archived_at = null, updated_at = ?
     where team_id = ? and id = ?`,
    definition,
    hash,
    tx.now,
    teamId,
    id,
  );
  // What waited while it was archived may run again.
  tx.touched.jobs = true;
  return stored.archived_at === null ? 'changed' : 'restored';
}

export function get(view: View, { teamId, id }: { teamId: string; id: string }): Workflow | undefined {
  const row = workflowRow(view, teamId, id);
  return row === undefined || row.archived_at !== null ? undefined : toWorkflow(row);
}

export function list(view: View, { teamId }: { teamId: string }): Workflow[] {
  return view.db
    .all<WorkflowRow>('select * from workflow where team_id = ? and archived_at is null order by id', teamId)
    .map(toWorkflow);
}

export function archive(tx: Tx, { teamId, ids }: { teamId: string; ids: readonly string[] }): number {
  return tx.db.run(
    `update workflow set archived_at = ?, updated_at = ?
     where team_id = ? and archived_at is null and id in (select value from json_each(?))`,
    tx.now,
    tx.now,
    teamId,
    JSON.stringify(ids),
  );
}

/** The row, archived or not. */
export function workflowRow(view: View, teamId: string, id: string): WorkflowRow | undefined {
  return view.db.get<WorkflowRow>('select * from workflow where team_id = ? and id = ?', teamId, id);
}

export function toWorkflow(row: WorkflowRow): Workflow {
  return {
    teamId: row.team_id,
    id: row.id,
    definition: JSON.parse(row.definition),
    definitionHash: row.definition_hash,
    pausedAt: row.paused_at,
    archivedAt: row.archived_at,
    currentVersion: row.current_version,
    oldestVersion: row.oldest_version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
