/** Removing the records that a run did not bring, and undoing what an unpublished attempt wrote. */
import type { RecordOperations } from '../record-operations.ts';
import type { Tx } from '../sql.ts';
import { heldWorkflow, MAX_BATCH, MAX_BATCH_BYTES } from './stage.ts';

type Input<Name extends keyof RecordOperations> = Parameters<RecordOperations[Name]>[0];

interface ClosableRow {
  seq: number;
  added_in: number;
  bytes: number;
}

/** Closes the first of these records, as many as one transaction should; returns how many it has dealt with. */
export async function remove(tx: Tx, { held, seqs }: Input<'remove'>): Promise<{ dealtWith: number }> {
  if (seqs.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const workflow = await heldWorkflow(tx, held);
  const version = workflow.current_version + 1;
  let dealtWith = 0;
  let removed = 0;
  let bytes = 0;
  for (; dealtWith < seqs.length && bytes < MAX_BATCH_BYTES; dealtWith++) {
    const row = await tx.db.get<ClosableRow>(
      `select seq, added_in, octet_length(body) as bytes from record
       where workflow = ? and seq = ? and added_in < ? and removed_in is null`,
      workflow.number,
      seqs[dealtWith] as number,
      version,
    );
    if (row === undefined) continue;
    await close(tx, workflow.number, row, version);
    removed++;
    bytes += row.bytes;
  }
  await tx.db.run(
    'update workflow set staged_removed = staged_removed + ?, staged_bytes = staged_bytes - ? where number = ?',
    removed,
    bytes,
    workflow.number,
  );
  return { dealtWith };
}

// Names the indexes, because the planner would scan the whole workflow in the order of `seq`. One row at a time, so
// that none is read in vain: a row of 1 MiB takes milliseconds.
const ADDED = `
  select seq, added_in, octet_length(body) as bytes
  from record indexed by record_added where workflow = ? and added_in = ? limit 1`;
const CLOSED = `
  select seq, added_in, octet_length(body) as bytes
  from record indexed by record_removed where workflow = ? and removed_in = ? limit 1`;

export async function sweep(tx: Tx, { held, limit }: Input<'sweep'>): Promise<{ done: boolean }> {
  const workflow = await heldWorkflow(tx, held);
  const { number } = workflow;
  const version = workflow.current_version + 1;
  let bytes = 0;
  for (let rows = 0; rows < limit && bytes < MAX_BATCH_BYTES; rows++) {
    // Rows are reopened only once no row of this version is left: until then a closed row may have a successor of the
    // same id.
    const added = await tx.db.get<ClosableRow>(ADDED, number, version);
    const closed = added ?? (await tx.db.get<ClosableRow>(CLOSED, number, version));
    if (closed === undefined) {
      await tx.db.run(
        `update workflow
         set staged_added = 0, staged_changed = 0, staged_removed = 0, staged_largest = 0, staged_bytes = 0
         where number = ?`,
        number,
      );
      return { done: true };
    }
    if (added !== undefined) await deleteRow(tx, number, added);
    else await close(tx, number, closed, null);
    bytes += closed.bytes;
  }
  return { done: false };
}

/** Sets the version from which on a row is removed; null reopens it. */
async function close(tx: Tx, workflow: number, row: ClosableRow, version: number | null): Promise<void> {
  await tx.db.run(
    'update record set removed_in = ? where workflow = ? and seq = ? and added_in = ?',
    version,
    workflow,
    row.seq,
    row.added_in,
  );
}

export async function deleteRow(
  tx: Tx,
  workflow: number,
  row: { seq: number; added_in: number },
): Promise<void> {
  await tx.db.run(
    'delete from record where workflow = ? and seq = ? and added_in = ?',
    workflow,
    row.seq,
    row.added_in,
  );
}
