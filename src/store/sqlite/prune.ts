/**
 * Pruning old versions. `oldest_version` moves first, so that readers notice that their version is gone; then the rows
 * that no readable version has are deleted, a few at a time. `pruned_version` says up to where that is done.
 */
import type { RecordOperations, Retention, WorkflowPlace } from '../record-operations.ts';
import { countPrunable } from '../version-row.ts';
import { MAX_BATCH_BYTES } from './stage.ts';
import { deleteRow } from './sweep.ts';
import type { Tx, View } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

type Input<Name extends keyof RecordOperations> = Parameters<RecordOperations[Name]>[0];

// A version may go when its successor was published long enough ago.
export function prunable(
  view: View,
  { after, limit, keepVersions, keepMs, graceMs }: Input<'prunable'>,
): { found: WorkflowPlace[]; next: WorkflowPlace | null } {
  const places = view.db
    .all<WorkflowPlace & { isPrunable: number }>(
      `select team_id as teamId, id as workflowId,
              pruned_version < oldest_version
              or exists (select 1 from version next
                         where next.team_id = workflow.team_id and next.workflow_id = workflow.id
                           and next.number = oldest_version + 1 and next.published_at <= ?
                           and (oldest_version <= current_version - ? or next.published_at <= ?)) as isPrunable
       from workflow where (team_id, id) > (?, ?) order by team_id, id limit ?`,
      view.now - graceMs,
      keepVersions,
      view.now - keepMs,
      after?.teamId ?? '',
      after?.workflowId ?? '',
      limit,
    )
    .map(({ isPrunable, ...place }) => ({ place, isPrunable }));
  return {
    found: places.filter(({ isPrunable }) => isPrunable === 1).map(({ place }) => place),
    next: places.length < limit ? null : (places.at(-1)?.place ?? null),
  };
}

export function prune(tx: Tx, input: Input<'prune'>): { done: boolean } {
  const workflow = workflowRow(tx, input.teamId, input.workflowId);
  if (workflow === undefined) return { done: true };
  const { limit } = input;
  const oldest = moveOldest(tx, workflow, input);
  if (workflow.pruned_version < oldest.version) {
    const done =
      deleteRecords(tx, workflow, oldest.version, limit) &&
      deleteVersions(tx, workflow, oldest.version, limit);
    if (!done) return { done: false };
    tx.db.run('update workflow set pruned_version = ? where number = ?', oldest.version, workflow.number);
  }
  return { done: oldest.done };
}

/** Looks at up to `limit` versions; `done` if no others may go. */
function moveOldest(
  tx: Tx,
  workflow: WorkflowRow,
  { limit, ...retention }: Retention & { limit: number },
): { version: number; done: boolean } {
  const successors = tx.db.all<{ number: number; published_at: number }>(
    `select number, published_at from version
     where team_id = ? and workflow_id = ? and number > ? and number <= ? order by number limit ?`,
    workflow.team_id,
    workflow.id,
    workflow.oldest_version,
    workflow.current_version,
    limit,
  );
  const prunable = countPrunable(successors, { now: tx.now, current: workflow.current_version, retention });
  const version = workflow.oldest_version + prunable;
  if (version > workflow.oldest_version) {
    tx.db.run('update workflow set oldest_version = ? where number = ?', version, workflow.number);
  }
  return { version, done: prunable < successors.length || successors.length < limit };
}

/** Deletes rows closed at or before version `oldest`, one at a time as `sweep` does; returns whether none is left. */
function deleteRecords(tx: Tx, { number }: WorkflowRow, oldest: number, limit: number): boolean {
  let bytes = 0;
  for (let rows = 0; rows < limit && bytes < MAX_BATCH_BYTES; rows++) {
    const row = tx.db.get<{ seq: number; added_in: number; bytes: number }>(
      `select seq, added_in, octet_length(body) as bytes from record indexed by record_removed
       where workflow = ? and removed_in <= ? limit 1`,
      number,
      oldest,
    );
    if (row === undefined) return true;
    deleteRow(tx, number, row);
    bytes += row.bytes;
  }
  return false;
}

function deleteVersions(tx: Tx, workflow: WorkflowRow, oldest: number, limit: number): boolean {
  const deleted = tx.db.run(
    `delete from version where (team_id, workflow_id, number) in
       (select team_id, workflow_id, number from version
        where team_id = ? and workflow_id = ? and number < ? order by number limit ?)`,
    workflow.team_id,
    workflow.id,
    oldest,
    limit,
  );
  return deleted < limit;
}
