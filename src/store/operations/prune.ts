/**
 * Deletes old versions. First `oldest_version` moves on, so that readers notice that their version is gone; then the
 * rows that no readable version has are deleted in small steps. `pruned_version` says how far that has come.
 */
import type { RecordOperations, Retention, WorkflowPlace } from '../record-operations.ts';
import { both, type Tx, type View } from '../sql.ts';
import { countPrunable } from '../version-row.ts';
import type { WorkflowRow } from '../workflow-row.ts';
import { inOrder, ofWorkflow } from './record-indexes.ts';
import { inParts, isFull, MAX_BATCH_BYTES } from './room.ts';
import { lockWorkflow } from './workflows.ts';

// A version may be deleted when the version after it was published long enough ago.
export async function prunable(
  view: View,
  { after, limit, keepVersions, keepMs, graceMs }: Parameters<RecordOperations['prunable']>[0],
): ReturnType<RecordOperations['prunable']> {
  const rows = await view.db.all<WorkflowPlace & { isPrunable: boolean }>(
    `select team_id as "teamId", id as "workflowId",
            pruned_version < oldest_version
            or exists (select 1 from version next
                       where next.team_id = workflow.team_id and next.workflow_id = workflow.id
                         and next.number = oldest_version + 1 and next.published_at <= $1
                         and (oldest_version <= current_version - $2::bigint or next.published_at <= $3))
              as "isPrunable"
     from workflow where (team_id, id) > ($4, $5) order by team_id, id limit $6`,
    view.now - graceMs,
    keepVersions,
    view.now - keepMs,
    after?.teamId ?? '',
    after?.workflowId ?? '',
    limit,
  );
  const places = rows.map(({ isPrunable, ...place }) => ({ place, isPrunable }));
  return {
    found: places.filter(({ isPrunable }) => isPrunable).map(({ place }) => place),
    next: places.length < limit ? null : (places.at(-1)?.place ?? null),
  };
}

/** The cursor of the deletion: the last row that was deleted. */
export interface PrunePlace {
  teamId: string;
  workflowId: string;
  removedIn: number;
  seq: number;
}

/** Before the first. */
export const PRUNE_START: PrunePlace = { teamId: '', workflowId: '', removedIn: 0, seq: 0 };

/**
 * Takes one step; `next` is where the next one goes on. Without that cursor each step would read all deleted rows again,
 * which stay in the index while somebody holds an old transaction open.
 */
export async function prune(
  tx: Tx,
  input: Retention & { teamId: string; workflowId: string; limit: number; after: PrunePlace },
): Promise<{ done: boolean; next: PrunePlace }> {
  const { teamId, workflowId, limit } = input;
  const [workflow] = await Promise.all([lockWorkflow(tx, teamId, workflowId), inOrder(tx.db)]);
  if (workflow === undefined) return { done: true, next: PRUNE_START };
  const oldest = await moveOldest(tx, workflow, input);
  if (workflow.pruned_version < oldest.version) {
    const isSame = input.after.teamId === teamId && input.after.workflowId === workflowId;
    const after = isSame
      ? input.after
      : { teamId, workflowId, removedIn: workflow.pruned_version + 1, seq: -1 };
    const records = await deleteRecords(tx, { after, oldest: oldest.version, limit });
    const done = records.done && (await deleteVersions(tx, workflow, oldest.version, limit));
    if (!done) return { done: false, next: records.next };
    await tx.db.run(
      'update workflow set pruned_version = $3 where team_id = $1 and id = $2',
      workflow.team_id,
      workflow.id,
      oldest.version,
    );
  }
  return { done: oldest.done, next: PRUNE_START };
}

/** Looks at no more than `limit` versions; `done` says whether those were all that can be deleted. */
async function moveOldest(
  tx: Tx,
  workflow: WorkflowRow,
  { limit, ...retention }: Retention & { limit: number },
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
  const prunable = countPrunable(successors, { now: tx.now, current: workflow.current_version, retention });
  const version = workflow.oldest_version + prunable;
  if (version > workflow.oldest_version) {
    await tx.db.run(
      'update workflow set oldest_version = $3 where team_id = $1 and id = $2',
      workflow.team_id,
      workflow.id,
      version,
    );
  }
  return { version, done: prunable < successors.length || successors.length < limit };
}

const CLOSED = both(
  (pick) => `
  select seq, removed_in as "removedIn", octet_length(body) as bytes from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')} and removed_in <= $3 and (removed_in, seq) > ($5::integer, $6::bigint)
  order by removed_in, seq limit $4`,
);
const DELETE_CLOSED = both(
  (pick) => `
  delete from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')}
    and (removed_in, seq) > ($3::integer, $4::bigint) and (removed_in, seq) <= ($5::integer, $6::bigint)`,
);

/** Deletes rows behind the cursor that were closed up to a version; returns whether none is left, and the new cursor. */
async function deleteRecords(
  tx: Tx,
  { after, oldest, limit }: { after: PrunePlace; oldest: number; limit: number },
): Promise<{ done: boolean; next: PrunePlace }> {
  const at = [after.teamId, after.workflowId] as const;
  const room = { rows: limit, bytes: MAX_BATCH_BYTES };
  let next = after;
  await inParts<{ seq: number; removedIn: number; bytes: number }>(tx.db, room, {
    first: (rows) => tx.db.all(CLOSED, ...at, oldest, rows, next.removedIn, next.seq),
    upTo: async ({ removedIn, seq }) => {
      await tx.db.run(DELETE_CLOSED, ...at, next.removedIn, next.seq, removedIn, seq);
      next = { ...next, removedIn, seq };
    },
  });
  return { done: !isFull(room), next };
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
