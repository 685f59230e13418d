/** Letting go of a job: what every way to end an attempt or a job has in common, but publishing. */
import { type AfterAttempt, type FailureReason, unlessCanceled } from '../../model/job.ts';
import type { JobRow } from '../job-row.ts';
import { appendJobEvent, moveUp } from './jobs.ts';
import type { Tx } from './transaction.ts';

/** An error is stored whole; in an event, whose body must stay under 20 kB, this many characters of it. */
const MAX_EVENT_ERROR = 2_000;

/**
 * Ends an attempt that came to nothing, or a job that waits, as `follows` says unless somebody had canceled the job:
 * then that is what it ends as, with the sentence that says who wanted it.
 */
export function letGo(
  tx: Tx,
  job: JobRow,
  end: {
    follows: AfterAttempt;
    reason: FailureReason | null;
    error: string | null;
    failures?: number;
    crashes?: number;
  },
): JobRow {
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
