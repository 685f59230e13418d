/** Closes the records that a run did not bring, and undoes what an attempt wrote without publishing. */
import type { Held } from '../../model/job.ts';
import { MAX_BATCH } from '../postgres/stage.ts';
import { both, type Tx } from '../sql.ts';
import { lockHeld } from './jobs.ts';
import { inOrder, ofWorkflow } from './record-indexes.ts';

/** Bytes of records that one transaction deletes or opens again, one record at least. */
export const MAX_BATCH_BYTES = 1_048_576;

// Rows are found and changed one by one by the primary key: see `stage.ts`.
const CLOSE = `
  with closed as (
    insert into record (team_id, workflow_id, seq, added_in, removed_in, id, body)
    select $1, $2, old.seq, old.added_in, $3::integer, '', ''
    from unnest($4::bigint[]) as wanted (seq)
    cross join lateral (
      select seq, added_in from record
      where team_id = $1 and workflow_id = $2 and seq = wanted.seq and added_in < $3
        and coalesce(removed_in, 0) = 0
      limit 1) as old
    on conflict (team_id, workflow_id, seq, added_in) do update set removed_in = excluded.removed_in
    returning octet_length(body) as bytes)
  select count(*) as rows, coalesce(sum(bytes), 0) as bytes from closed`;

export async function remove(tx: Tx, { held, seqs }: { held: Held; seqs: readonly number[] }): Promise<void> {
  if (seqs.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const { workflow } = await lockHeld(tx, held);
  const closed = await tx.db.get<{ rows: number; bytes: number }>(
    CLOSE,
    workflow.team_id,
    workflow.id,
    workflow.current_version + 1,
    [...new Set(seqs)],
  );
  await tx.db.run(
    `update workflow set staged_removed = staged_removed + $3, staged_bytes = staged_bytes - $4
     where team_id = $1 and id = $2`,
    workflow.team_id,
    workflow.id,
    closed?.rows ?? 0,
    closed?.bytes ?? 0,
  );
}

const ADDED = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_added */
  where ${ofWorkflow(pick, 'added')} and added_in = $3 order by seq limit $4`,
);
const DELETE = both(
  (pick) => `
  delete from record /* use record_added */ where ${ofWorkflow(pick, 'added')} and added_in = $3 and seq <= $4`,
);
const CLOSED = both(
  (pick) => `
  select seq, octet_length(body) as bytes from record /* use record_removed */
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 order by seq limit $4`,
);
const REOPEN = both(
  (pick) => `
  update record /* use record_removed */ set removed_in = null
  where ${ofWorkflow(pick, 'removed')} and removed_in = $3 and seq <= $4`,
);

interface Place {
  seq: number;
  bytes: number;
}

export async function sweep(
  tx: Tx,
  { held, limit }: { held: Held; limit: number },
): Promise<{ done: boolean }> {
  const [{ workflow }] = await Promise.all([lockHeld(tx, held), inOrder(tx.db)]);
  const { team_id: teamId, id: workflowId } = workflow;
  const version = workflow.current_version + 1;
  const added = await tx.db.all<Place>(ADDED, teamId, workflowId, version, limit);
  const deleted = fitting(added, MAX_BATCH_BYTES);
  if (deleted.length > 0) {
    await tx.db.run(DELETE, teamId, workflowId, version, deleted.at(-1)?.seq ?? 0);
  }
  const left = { rows: limit - deleted.length, bytes: MAX_BATCH_BYTES - sum(deleted) };
  // Rows are reopened only when none of this version is left: a closed row may still have a successor with the
  // same id.
  if (left.rows <= 0 || left.bytes <= 0) return { done: false };
  const closed = await tx.db.all<Place>(CLOSED, teamId, workflowId, version, left.rows);
  const opened = fitting(closed, left.bytes);
  if (opened.length > 0) await tx.db.run(REOPEN, teamId, workflowId, version, opened.at(-1)?.seq ?? 0);
  if (opened.length === left.rows || sum(opened) >= left.bytes) return { done: false };
  await tx.db.run(
    `update workflow
     set staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0
     where team_id = $1 and id = $2`,
    teamId,
    workflowId,
  );
  return { done: true };
}

/** The first rows, until they have so many bytes together; one at least. */
export function fitting<Row extends { bytes: number }>(rows: readonly Row[], bytes: number): Row[] {
  let before = 0;
  return rows.filter((row) => {
    const fits = before < bytes;
    before += row.bytes;
    return fits;
  });
}

function sum(rows: readonly { bytes: number }[]): number {
  return rows.reduce((bytes, row) => bytes + row.bytes, 0);
}
