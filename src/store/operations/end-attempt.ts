/** Ends an attempt, or a waiting job, in any way but by publishing: failed, retrying or canceled. */
import { unlessCanceled } from '../../model/job.ts';
import { type AttemptEnd, type JobRow, MAX_EVENT_ERROR } from '../job-row.ts';
import type { Tx } from '../sql.ts';
import { appendJobEvent, moveUp } from './jobs.ts';

/**
 * Ends an attempt or a waiting job as `follows` says. If cancellation was requested, the job ends as canceled instead,
 * and keeps the sentence that says by whom. The caller has locked the job and its workflow.
 */
export async function endAttempt(tx: Tx, job: JobRow, end: AttemptEnd): Promise<JobRow> {
  const then = unlessCanceled({ cancelRequestedAt: job.cancel_requested_at }, end.follows);
  const canceled = then.state === 'canceled';
  const ended: JobRow = {
    ...job,
    state: then.state,
    run_at: then.state === 'retrying' ? then.runAt : job.run_at,
    reason: canceled ? null : end.reason,
    error: job.cancel_requested_at === null ? end.error : job.error,
    failures: end.failures ?? job.failures,
    crashes: end.crashes ?? job.crashes,
    finished_at: then.state === 'retrying' ? null : tx.now,
    progress: withoutMessage(job.progress),
    node_id: null,
    lease_until: null,
    process_pid: null,
    process_started_at: null,
  };
  tx.touched.jobs = true;
  if (then.state === 'retrying') {
    await save(tx, ended);
    return ended;
  }
  const error = ended.error?.slice(0, MAX_EVENT_ERROR);
  if (canceled) appendJobEvent(tx, ended, 'workflow_canceled', { error, attempt: job.attempt });
  else appendJobEvent(tx, ended, 'workflow_failed', { reason: end.reason, error, attempt: job.attempt });
  await Promise.all([save(tx, ended), moveUp(tx, ended)]);
  return ended;
}

/** What is shown of an attempt that has ended: how far it came, and no longer what it is doing. */
export function withoutMessage(progress: string | null): string | null {
  return progress === null ? null : JSON.stringify({ ...JSON.parse(progress), message: null });
}

async function save(tx: Tx, ended: JobRow): Promise<void> {
  await tx.db.run(
    `update job
     set state = $1, run_at = $2, reason = $3, error = $4, failures = $5, crashes = $6, finished_at = $7,
         progress = $8, node_id = null, lease_until = null, process_pid = null, process_started_at = null
     where team_id = $9 and id = $10`,
    ended.state,
    ended.run_at,
    ended.reason,
    ended.error,
    ended.failures,
    ended.crashes,
    ended.finished_at,
    ended.progress,
    ended.team_id,
    ended.id,
  );
}
