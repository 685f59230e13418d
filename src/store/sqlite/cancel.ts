/** Canceling jobs, and making waiting ones due at once. */
import { type Held, isWaiting, onCancel } from '../../model/job.ts';
import type { JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { endAttempt } from './end-attempt.ts';
import { heldJob, jobRow } from './jobs.ts';
import type { Tx } from './transaction.ts';

export function cancel(
  tx: Tx,
  input: { teamId: string; id: string; by: string },
): Awaited<ReturnType<JobOperations['cancel']>> {
  const job = jobRow(tx, input);
  if (job === undefined) return undefined;
  const outcome = onCancel(job.state);
  if (outcome === 'ended') return { outcome, job: toJob(job) };
  if (outcome === 'canceled') {
    const follows = { state: 'canceled' } as const;
    return { outcome, job: toJob(endAttempt(tx, job, { follows, reason: null, error: input.by })) };
  }
  tx.touched.cancels = true;
  return { outcome, job: toJob(requestCancel(tx, job, input.by)) };
}

/** Stores who asked, unless somebody asked before. */
function requestCancel(tx: Tx, job: JobRow, by: string): JobRow {
  if (job.cancel_requested_at !== null) return job;
  return tx.db.get<JobRow>(
    `update job set cancel_requested_at = ?, reason = null, error = ?
     where team_id = ? and id = ? returning *`,
    tx.now,
    by,
    job.team_id,
    job.id,
  ) as JobRow;
}

export function endCanceled(tx: Tx, { held }: { held: Held }): void {
  const job = heldJob(tx, held);
  if (job.cancel_requested_at === null) throw new Error(`Nobody has canceled job ${job.id}`);
  endAttempt(tx, job, { follows: { state: 'canceled' }, reason: null, error: job.error });
}

export function runNow(
  tx: Tx,
  at: { teamId: string; id: string },
): Awaited<ReturnType<JobOperations['runNow']>> {
  const job = jobRow(tx, at);
  if (job === undefined) return undefined;
  if (!isWaiting(job.state)) return { outcome: 'not_waiting', job: toJob(job) };
  // A job that is already due keeps its place in the queue.
  const due = tx.db.get<JobRow>(
    'update job set run_at = min(run_at, ?) where team_id = ? and id = ? returning *',
    tx.now,
    job.team_id,
    job.id,
  ) as JobRow;
  tx.touched.jobs = true;
  return { outcome: 'due', job: toJob(due) };
}
