/** Ends an attempt, or a waiting job, in any way but by publishing: failed, retrying or canceled. */
import { unlessCanceled } from '../../model/job.ts';
import { type AttemptEnd, type JobRow, MAX_EVENT_ERROR } from '../job-row.ts';
import { appendJobEvent, moveUp } from './jobs.ts';
import type { Tx } from './transaction.ts';

/**
 * Ends an attempt or a waiting job as `follows` says. If cancellation was requested, the job ends as canceled instead,
 * and keeps the sentence that says by whom.
 */
export function endAttempt(tx: Tx, job: JobRow, end: AttemptEnd): JobRow {
  const then = unlessCanceled({ cancelRequestedAt: job.cancel_requested_at }, end.follows);
  const canceled = then.state === 'canceled';
  const ended = tx.db.get<JobRow>(
    `update job
     set state = ?, run_at = ?, reason = ?, error = ?, failures = ?, crashes = ?, finished_at = ?,
         progress = json_set(progress, '$.message', null),
         node_id = null, lease_until = null, process_pid = null, process_started_at = null
     where team_id = ? and id = ? returning *`,
    then.state,
    then.state === 'retrying' ? then.runAt : job.run_at,
    canceled ? null : end.reason,
    job.cancel_requested_at === null ? end.error : job.error,
    end.failures ?? job.failures,
    end.crashes ?? job.crashes,
    then.state === 'retrying' ? null : tx.now,
    job.team_id,
    job.id,
  ) as JobRow;
  tx.touched.jobs = true;
  if (then.state === 'retrying') return ended;
  const error = ended.error?.slice(0, MAX_EVENT_ERROR);
  if (canceled) appendJobEvent(tx, ended, 'workflow_canceled', { error, attempt: job.attempt });
  else appendJobEvent(tx, ended, 'workflow_failed', { reason: end.reason, error, attempt: job.attempt });
  moveUp(tx, ended);
  return ended;
}
