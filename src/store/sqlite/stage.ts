/**
 * Staging: writes a run's records under the next version N, which no reader sees yet, as `model/staging.ts` decided.
 *
 * Changes are counted in the workflow's row at once, so that publishing need not count. A row that is not what was
 * compared ends the run: only one attempt writes at a time, so that would be a bug of ours.
 */
import type { Held } from '../../model/job.ts';
import type { StagedWrite } from '../../model/staging.ts';
import { lockHeld } from '../operations/jobs.ts';
import type { RecordOperations } from '../record-operations.ts';
import type { Tx, View } from '../sql.ts';
import type { WorkflowRow } from '../workflow-row.ts';

/** How many records one transaction may write: every other write waits for it. */
export const MAX_BATCH = 500;
/**
 * How many bytes of records one transaction may touch (but at least one record): closing a row rewrites all of it, and
 * deleting one overwrites it with zeros. Measured: some 15 ms for a record of 1 MiB.
 */
export const MAX_BATCH_BYTES = 1_048_576;

/** Carries out the first of the writes, as many as one transaction should; returns their `seq`s. */
export async function stage(
  tx: Tx,
  { held, writes }: Parameters<RecordOperations['stage']>[0],
): Promise<{ seqs: number[] }> {
  if (writes.length > MAX_BATCH) throw new RangeError(`A batch may hold ${MAX_BATCH} records`);
  const workflow = await heldWorkflow(tx, held);
  const run: Run = {
    workflow: workflow.number,
    version: workflow.current_version + 1,
    nextSeq: workflow.next_seq,
    added: 0,
    changed: 0,
    largest: 0,
    bytes: 0,
    grown: 0,
  };
  const seqs: number[] = [];
  for (const write of writes) {
    if (run.bytes >= MAX_BATCH_BYTES) break;
    seqs.push(await apply(tx, run, write));
  }
  await tx.db.run(
    `update workflow
     set next_seq = ?, staged_added = staged_added + ?, staged_changed = staged_changed + ?,
         staged_largest = max(staged_largest, ?), staged_bytes = staged_bytes + ?
     where number = ?`,
    run.nextSeq,
    run.added,
    run.changed,
    run.largest,
    run.grown,
    workflow.number,
  );
  return { seqs };
}

/** The state of writing one batch. */
interface Run {
  workflow: number;
  /** N, the version that is being written. */
  version: number;
  nextSeq: number;
  added: number;
  changed: number;
  /** Bytes of the longest record written. */
  largest: number;
  /** Bytes of all rows touched. */
  bytes: number;
  /** By how many bytes the records have grown; negative if they have shrunk. */
  grown: number;
}

async function apply(tx: Tx, run: Run, write: StagedWrite): Promise<number> {
  if (write.kind === 'restore') return await restore(tx, run, write.seq);
  const bytes = Buffer.byteLength(write.body);
  run.largest = Math.max(run.largest, bytes);
  run.bytes += bytes;
  if (write.kind === 'insert') return await insert(tx, run, write);
  return write.kind === 'supersede' ? await supersede(tx, run, write) : await rewrite(tx, run, write);
}

const INSERT = 'insert into record (workflow, seq, added_in, id, body) values (?, ?, ?, ?, ?)';

async function insert(tx: Tx, run: Run, { id, body }: { id: string; body: string }): Promise<number> {
  const seq = run.nextSeq;
  const inserted = await tx.db.run(
    `${INSERT} on conflict do nothing`,
    run.workflow,
    seq,
    run.version,
    id,
    body,
  );
  if (inserted === 0) return await alreadyWritten(tx, run, { id, body });
  run.nextSeq++;
  run.added++;
  run.grown += Buffer.byteLength(body);
  return seq;
}

/** Closes the published row and adds its successor. */
async function supersede(
  tx: Tx,
  run: Run,
  { id, seq, addedIn, body }: { id: string; seq: number; addedIn: number; body: string },
): Promise<number> {
  if (addedIn >= run.version) throw notCompared(run, id);
  const old = await tx.db.get<{ bytes: number }>(
    `select octet_length(body) as bytes from record
     where workflow = ? and seq = ? and added_in = ? and id = ? and removed_in is null`,
    run.workflow,
    seq,
    addedIn,
    id,
  );
  if (old === undefined) return await alreadyWritten(tx, run, { id, body, seq });
  await tx.db.run(
    'update record set removed_in = ? where workflow = ? and seq = ? and added_in = ?',
    run.version,
    run.workflow,
    seq,
    addedIn,
  );
  await tx.db.run(INSERT, run.workflow, seq, run.version, id, body);
  run.changed++;
  run.bytes += old.bytes;
  run.grown += Buffer.byteLength(body) - old.bytes;
  return seq;
}

async function rewrite(tx: Tx, run: Run, { seq, body }: { seq: number; body: string }): Promise<number> {
  const at = [run.workflow, seq, run.version] as const;
  const old = await tx.db.get<{ bytes: number }>(
    'select octet_length(body) as bytes from record where workflow = ? and seq = ? and added_in = ?',
    ...at,
  );
  if (old === undefined) throw notCompared(run, seq);
  await tx.db.run('update record set body = ? where workflow = ? and seq = ? and added_in = ?', body, ...at);
  run.grown += Buffer.byteLength(body) - old.bytes;
  return seq;
}

/** Reverts a change: deletes the row that the run has written and reopens the one that it had closed. */
async function restore(tx: Tx, run: Run, seq: number): Promise<number> {
  const closed = await tx.db.get<{ added_in: number; bytes: number }>(
    `select added_in, octet_length(body) as bytes from record
     where workflow = ? and seq = ? and removed_in = ?`,
    run.workflow,
    seq,
    run.version,
  );
  if (closed === undefined) return await alreadyRestored(tx, run, seq);
  // In this order, because only one row of an id may be current.
  const deleted = await tx.db.get<{ bytes: number }>(
    `delete from record where workflow = ? and seq = ? and added_in = ?
     returning octet_length(body) as bytes`,
    run.workflow,
    seq,
    run.version,
  );
  if (deleted === undefined) throw notCompared(run, seq);
  await tx.db.run(
    'update record set removed_in = null where workflow = ? and seq = ? and added_in = ?',
    run.workflow,
    seq,
    closed.added_in,
  );
  run.changed--;
  run.bytes += closed.bytes;
  run.grown += closed.bytes - deleted.bytes;
  return seq;
}

/** The `seq` of a row that this run has written before: this is a retry, because the first answer was lost. */
async function alreadyWritten(
  tx: Tx,
  run: Run,
  row: { id: string; body: string; seq?: number },
): Promise<number> {
  const found = await tx.db.get<{ seq: number; added_in: number; body: string }>(
    'select seq, added_in, body from record where workflow = ? and id = ? and removed_in is null',
    run.workflow,
    row.id,
  );
  const same = found?.added_in === run.version && found.body === row.body;
  if (found === undefined || !same || found.seq !== (row.seq ?? found.seq)) throw notCompared(run, row.id);
  return found.seq;
}

/** The `seq` of a row that this run has restored before. */
async function alreadyRestored(tx: Tx, run: Run, seq: number): Promise<number> {
  const found = await tx.db.get<{ added_in: number }>(
    'select added_in from record where workflow = ? and seq = ? and removed_in is null',
    run.workflow,
    seq,
  );
  if (found === undefined || found.added_in === run.version) throw notCompared(run, seq);
  return seq;
}

function notCompared(run: Run, record: string | number): Error {
  return new Error(
    `Record ${JSON.stringify(record)} of version ${run.version} is not what the run had compared. ` +
      'Nothing was published; run the job again, and report this if it comes back',
  );
}

/** The workflow of an attempt that still holds its job, with the number that its records have; else FencedError. */
export async function heldWorkflow(view: View, held: Held): Promise<WorkflowRow & { number: number }> {
  return (await lockHeld(view, held)).workflow as WorkflowRow & { number: number };
}
