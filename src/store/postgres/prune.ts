/**
 * Giving up old versions. `oldest_version` moves first, so that readers can tell that they were overtaken; then
 * the rows go that no readable version has, a little at a time. `pruned_version` says how far that has come.
 */
import type { Retention } from '../record-operations.ts';
import type { WorkflowRow } from '../workflow-row.ts';
import { inOrder, ofWorkflow } from './record-indexes.ts';
import { fitting, MAX_BATCH_BYTES } from './sweep.ts';
import type { Tx, View } from './transaction.ts';
import { lockWorkflow } from './workflows.ts';

// A version is given up when the one that superseded it was published long enough ago.
export async function prunable(
  view: View,
  { limit, keepVersions, keepMs, graceMs }: Retention & { limit: number },
): Promise<{ teamId: string; workflowId: string }[]> {
  return view.db.all<{ teamId: string; workflowId: string }>(
    `select team_id as "teamId", id as "workflowId" from workflow
     where pruned_version < oldest_version
        or exists (select 1 from version next
                   where next.team_id = workflow.team_id and next.workflow_id = workflow.id
                     and next.number = oldest_version + 1 and next.published_at <= $1
                     and (oldest_version <= current_version - $2::bigint or next.published_at <= $3))
     limit $4`,
    view.now - graceMs,
    keepVersions,
    view.now - keepMs,
    limit,
  );
}

export async function prune(
  tx: Tx,
  input: Retention & { teamId: string; workflowId: string; limit: number },
): Promise<{ done: boolean }> {
  const [workflow] = await Promise.all([lockWorkflow(tx, input.teamId, input.workflowId), inOrder(tx.db)]);
  if (workflow === undefined) return { done: true };
  const { limit } = input;
  const oldest = await moveOldest(tx, workflow, input);
  if (workflow.pruned_version < oldest.version) {
    const done =
      (await deleteRecords(tx, workflow, oldest.version, limit)) &&
      (await deleteVersions(tx, workflow, oldest.version, limit));
    if (!done) return { done: false };
    await tx.db.run(
      'update workflow set pruned_version = $3 where team_id = $1 and id = $2',
      workflow.team_id,
      workflow.id,
      oldest.version,
    );
  }
  return { done: oldest.done };
}

/** Looks at no more than `limit` versions; `done` says whether that were all that could be given up. */
async function moveOldest(
  tx: Tx,
  workflow: WorkflowRow,
  { keepVersions, keepMs, graceMs, limit }: Retention & { limit: number },
): Promise<{ version: number; done: boolean }> {
  const successors = await tx.db.all<{ number: number; published_at: number }>(
    `select number, published_at from version
     where team_id = $1 and workflow_id = $2 and number > $3 and number <= $4 order by number limit $5`,
    workflow.team_id,
    workflow.id,
    workflow.oldest_version,
    workflow.current_version,
    limit,
  );
  const kept = successors.findIndex(({ number, published_at }) => {
    const supersededMs = tx.now - published_at;
    return (
      supersededMs < graceMs ||
      (number - 1 > workflow.current_version - keepVersions && supersededMs < keepMs)
    );
  });
  const version = workflow.oldest_version + (kept === -1 ? successors.length : kept);
  if (version > workflow.oldest_version) {
    await tx.db.run(
      'update workflow set oldest_version = $3 where team_id = $1 and id = $2',
      workflow.team_id,
      workflow.id,
      version,
    );
  }
  return { version, done: kept !== -1 || successors.length < limit };
}

/** Deletes rows that were closed up to a version; answers whether none is left. */
async function deleteRecords(
  tx: Tx,
  { team_id, id }: WorkflowRow,
  oldest: number,
  limit: number,
): Promise<boolean> {
  const closed = await tx.db.all<{ seq: number; removedIn: number; bytes: number }>(
    `select seq, removed_in as "removedIn", octet_length(body) as bytes from record
     where ${ofWorkflow('removed', '$2')} and removed_in <= $3 order by removed_in, seq limit $4`,
    team_id,
    id,
    oldest,
    limit,
  );
  const some = fitting(closed, MAX_BATCH_BYTES);
  const last = some.at(-1);
  if (last === undefined) return true;
  await tx.db.run(
    `delete from record where ${ofWorkflow('removed', '$2')}
       and (removed_in, seq) <= ($3::integer, $4::bigint)`,
    team_id,
    id,
    last.removedIn,
    last.seq,
  );
  return some.length < limit && some.length === closed.length;
}

async function deleteVersions(
  tx: Tx,
  workflow: WorkflowRow,
  oldest: number,
  limit: number,
): Promise<boolean> {
  const at = [workflow.team_id, workflow.id] as const;
  const old = await tx.db.all<{ number: number }>(
    `select number from version where team_id = $1 and workflow_id = $2 and number < $3 order by number limit $4`,
    ...at,
    oldest,
    limit,
  );
  await tx.db.run(
    'delete from version where team_id = $1 and workflow_id = $2 and number <= $3',
    ...at,
    old.at(-1)?.number ?? 0,
  );
  return old.length < limit;
}
