/**
 * Writing a run's records under the next version N, unseen by readers: a row is visible at version V when
 * `added_in <= V and (removed_in is null or removed_in > V)`, and N is not published yet.
 */
import type { Held } from '../../model/job.ts';
import type { Mode } from '../../model/workflow.ts';
import type { Staged, StagedRecord } from '../store.ts';
import { heldJob } from './jobs.ts';
import type { Tx, View } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

/** Records that one transaction may write: it holds up every other writer. */
const MAX_RECORDS = 500;

export function stage(
  tx: Tx,
  { held, mode, records }: { held: Held; mode: Mode; records: readonly StagedRecord[] },
): Staged {
  if (records.length > MAX_RECORDS) throw new RangeError(`A batch may hold ${MAX_RECORDS} records`);
  const workflow = heldWorkflow(tx, held);
  const run = {
    workflow: workflow.number,
    version: workflow.current_version + 1,
    nextSeq: workflow.next_seq,
    duplicates: 0,
  };
  const seqs = records.map((record) => stageRecord(tx, run, mode, record));
  const largest = records.reduce((bytes, { body }) => Math.max(bytes, Buffer.byteLength(body)), 0);
  if (run.nextSeq !== workflow.next_seq || largest > workflow.staged_largest) {
    tx.db.run(
      'update workflow set next_seq = ?, staged_largest = max(staged_largest, ?) where number = ?',
      run.nextSeq,
      largest,
      workflow.number,
    );
  }
  return { seqs, duplicates: run.duplicates };
}

/** A run as it writes one batch. */
interface Run {
  workflow: number;
  /** The version that is being written. */
  version: number;
  nextSeq: number;
  duplicates: number;
}

interface CurrentRow {
  seq: number;
  added_in: number;
  body: string;
}

/** Writes one record; answers its `seq`. The last body of an id wins, at its first position. */
function stageRecord(tx: Tx, run: Run, mode: Mode, { id, body }: StagedRecord): number {
  const current = tx.db.get<CurrentRow>(
    'select seq, added_in, body from record where workflow = ? and id = ? and removed_in is null',
    run.workflow,
    id,
  );
  if (current === undefined) {
    const seq = run.nextSeq++;
    insert(tx, run, seq, id, body);
    return seq;
  }
  if (current.added_in === run.version || mode === 'append') run.duplicates++;
  if (mode === 'append' || current.body === body) return current.seq;
  if (current.added_in < run.version) {
    close(tx, run, current);
    insert(tx, run, current.seq, id, body);
  } else {
    rewrite(tx, run, current.seq, body);
  }
  return current.seq;
}

/** Replaces what this run has written before. When that leads back to the published body, nothing has changed. */
function rewrite(tx: Tx, run: Run, seq: number, body: string): void {
  const published = tx.db.get<CurrentRow>(
    'select seq, added_in, body from record where workflow = ? and seq = ? and removed_in = ?',
    run.workflow,
    seq,
    run.version,
  );
  if (published?.body === body) {
    // In this order: only one row of an id may be current.
    tx.db.run(
      'delete from record where workflow = ? and seq = ? and added_in = ?',
      run.workflow,
      seq,
      run.version,
    );
    tx.db.run(
      'update record set removed_in = null where workflow = ? and seq = ? and added_in = ?',
      run.workflow,
      seq,
      published.added_in,
    );
    return;
  }
  tx.db.run(
    'update record set body = ? where workflow = ? and seq = ? and added_in = ?',
    body,
    run.workflow,
    seq,
    run.version,
  );
}

function insert(tx: Tx, run: Run, seq: number, id: string, body: string): void {
  tx.db.run(
    'insert into record (workflow, seq, added_in, id, body) values (?, ?, ?, ?, ?)',
    run.workflow,
    seq,
    run.version,
    id,
    body,
  );
}

function close(tx: Tx, run: Run, row: CurrentRow): void {
  tx.db.run(
    'update record set removed_in = ? where workflow = ? and seq = ? and added_in = ?',
    run.version,
    run.workflow,
    row.seq,
    row.added_in,
  );
}

export function remove(tx: Tx, { held, seqs }: { held: Held; seqs: readonly number[] }): void {
  const workflow = heldWorkflow(tx, held);
  const version = workflow.current_version + 1;
  const list = JSON.stringify(seqs);
  // What only this run has written leaves no trace.
  tx.db.run(
    `delete from record
     where workflow = ? and seq in (select value from json_each(?)) and added_in = ? and removed_in is null`,
    workflow.number,
    list,
    version,
  );
  tx.db.run(
    `update record set removed_in = ?
     where workflow = ? and seq in (select value from json_each(?)) and removed_in is null`,
    version,
    workflow.number,
    list,
  );
}

export function sweep(tx: Tx, { held, limit }: { held: Held; limit: number }): { done: boolean } {
  const workflow = heldWorkflow(tx, held);
  const version = workflow.current_version + 1;
  const deleted = tx.db.run(
    `delete from record where (workflow, seq, added_in) in
       (select workflow, seq, added_in from record where workflow = ? and added_in = ? limit ?)`,
    workflow.number,
    version,
    limit,
  );
  // Rows are reopened only when none of this version is left (the limit is 0 until then): a closed row may still
  // have a successor with the same id.
  const reopened = tx.db.run(
    `update record set removed_in = null where (workflow, seq, added_in) in
       (select workflow, seq, added_in from record where workflow = ? and removed_in = ? limit ?)`,
    workflow.number,
    version,
    limit - deleted,
  );
  if (deleted + reopened === limit) return { done: false };
  tx.db.run(
    'update workflow set staged_largest = 0 where number = ? and staged_largest > 0',
    workflow.number,
  );
  return { done: true };
}

export function currentSeqs(
  view: View,
  { held, afterSeq, limit }: { held: Held; afterSeq: number; limit: number },
): number[] {
  const { number } = heldWorkflow(view, held);
  return view.db
    .all<{ seq: number }>(
      'select seq from record where workflow = ? and seq > ? and removed_in is null order by seq limit ?',
      number,
      afterSeq,
      limit,
    )
    .map(({ seq }) => seq);
}

/** The workflow of an attempt that still holds its job, else FencedError. */
export function heldWorkflow(view: View, held: Held): WorkflowRow {
  const job = heldJob(view, held);
  return workflowRow(view, job.team_id, job.workflow_id) as WorkflowRow;
}
