/** Erasing a person: the writes, each in one short transaction. `find-content.ts` does the searching. */
import type { AfterFailure } from '../../model/job.ts';
import type { ErasureOperations, SuppressionRow } from '../erasure-operations.ts';
import type { JobRow } from '../job-row.ts';
import { touchAllLanes } from '../touched.ts';
import { fail, release } from './attempts.ts';
import type { Value } from './database.ts';
import { rewriteStatement } from './find-content.ts';
import type { Tx, View } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

type Input<Name extends keyof ErasureOperations> = Parameters<ErasureOperations[Name]>[0];
type Result<Name extends keyof ErasureOperations> = Awaited<ReturnType<ErasureOperations[Name]>>;

/** How many records one transaction removes. */
const MAX_REMOVED = 100;

export function workflows(
  view: View,
  { teamId, after = '', limit }: Input<'workflows'>,
): Result<'workflows'> {
  return view.db
    .all<{ id: string; definition: string }>(
      'select id, definition from workflow where team_id = ? and id > ? order by id limit ?',
      teamId,
      after,
      limit,
    )
    .map((row) => ({ ...row }));
}

export function rewrite(tx: Tx, { teamId, place, texts }: Input<'rewrite'>): number {
  let changed = 0;
  for (const { key, was, text } of texts) {
    const keys = JSON.parse(key) as Value[];
    changed += tx.db.run(rewriteStatement(place), text, teamId, ...keys, was);
    // A run under way has read the state and would store it again.
    if (place === 'state') interrupt(tx, { teamId, workflowId: String(keys[0]) });
  }
  if (place === 'event' && changed > 0) noteRewriting(tx, teamId);
  return changed;
}

/** Makes senders discard the bodies they hold in memory, and `settle` the responses to requests under way. */
function noteRewriting(tx: Tx, teamId: string): void {
  tx.db.run('update team set rewrites = rewrites + 1 where id = ?', teamId);
  touchAllLanes(tx);
}

export function remove(tx: Tx, { teamId, workflowId, seqs }: Input<'remove'>): number {
  if (seqs.length > MAX_REMOVED) throw new RangeError(`At most ${MAX_REMOVED} records are removed at once`);
  const workflow = workflowRow(tx, teamId, workflowId);
  if (workflow === undefined) return 0;
  interrupt(tx, { teamId, workflowId });
  const removed = seqs.reduce((rows, seq) => rows + removeOne(tx, workflow, seq), 0);
  if (removed > 0) tx.db.run('update workflow set erasures = erasures + 1 where number = ?', workflow.number);
  return removed;
}

/** Subtracts a record from the counts of every version, and deletes its rows. */
function removeOne(tx: Tx, { team_id, id, number }: WorkflowRow, seq: number): number {
  const rows = tx.db.all<{ added_in: number; removed_in: number | null; bytes: number }>(
    `select added_in, removed_in, octet_length(body) as bytes from record
     where workflow = ? and seq = ?`,
    number,
    seq,
  );
  const began = new Set(rows.map((row) => row.added_in));
  const ended = new Set(rows.map((row) => row.removed_in));
  for (const { added_in, removed_in, bytes } of rows) {
    tx.db.run(
      `update version set total = total - 1, bytes = bytes - ?
       where team_id = ? and workflow_id = ? and number >= ? and (? is null or number < ?)`,
      bytes,
      team_id,
      id,
      added_in,
      removed_in,
      removed_in,
    );
    // A row that ends where another one begins is a change.
    tx.db.run(
      `update version set added = max(0, added - ?), changed = max(0, changed - ?)
       where team_id = ? and workflow_id = ? and number = ?`,
      ended.has(added_in) ? 0 : 1,
      ended.has(added_in) ? 1 : 0,
      team_id,
      id,
      added_in,
    );
    if (removed_in === null || began.has(removed_in)) continue;
    tx.db.run(
      `update version set removed = max(0, removed - 1)
       where team_id = ? and workflow_id = ? and number = ?`,
      team_id,
      id,
      removed_in,
    );
  }
  return tx.db.run('delete from record where workflow = ? and seq = ?', number, seq);
}

/**
 * Ends running attempts: they may have compared records that no longer exist, or read those of a person suppressed
 * since. The fence rejects whatever they still write.
 */
function interrupt(tx: Tx, at: { teamId: string; workflowId: string | null }): void {
  const running = tx.db.all<JobRow>(
    `select * from job indexed by job_running
     where team_id = ? and (? is null or workflow_id = ?) and state = 'running'`,
    at.teamId,
    at.workflowId,
    at.workflowId,
  );
  for (const job of running) {
    const held = { teamId: job.team_id, jobId: job.id, attempt: job.attempt };
    if (job.origin !== 'push') {
      release(tx, { held: [held] });
      continue;
    }
    const then: AfterFailure = { state: 'failed' };
    fail(tx, {
      held,
      reason: 'lost',
      error: 'Data was erased from this workflow while the push ran. Send its records again',
      failures: job.failures,
      then,
    });
  }
}

export function suppress(tx: Tx, { teamId, entries }: Input<'suppress'>): void {
  for (const { workflowId, kind, hash } of entries) {
    const stored = tx.db.run(
      `insert into suppression (team_id, workflow_id, kind, hash, created_at) values (?, ?, ?, ?, ?)
       on conflict do nothing`,
      teamId,
      workflowId,
      kind,
      hash,
      tx.now,
    );
    if (stored > 0) interrupt(tx, { teamId, workflowId: workflowId === '' ? null : workflowId });
  }
}

export function suppressed(
  view: View,
  { teamId, workflowId, after, limit }: Input<'suppressed'>,
): SuppressionRow[] {
  return view.db
    .all<SuppressionRow>(
      `select workflow_id as workflowId, kind, hash from suppression
       where team_id = ? and workflow_id = ? and (kind, hash) > (?, ?) order by kind, hash limit ?`,
      teamId,
      workflowId,
      after?.kind ?? '',
      after?.hash ?? '',
      limit,
    )
    .map((row) => ({ ...row }));
}
