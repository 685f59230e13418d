/** What people ask of a job: canceling it, and running a waiting one now. */
import { type Held, isWaiting, onCancel } from '../../model/job.ts';
import type { JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import type { Tx } from '../sql.ts';
import { endAttempt } from './end-attempt.ts';
import { lockHeld, lockJob } from './jobs.ts';

export async function cancel(
  tx: Tx,
  input: { teamId: string; id: string; by: string },
): ReturnType<JobOperations['cancel']> {
  const job = (await lockJob(tx, input))?.job;
  if (job === undefined) return undefined;
  const outcome = onCancel(job.state);
  if (outcome === 'ended') return { outcome, job: toJob(job) };
  if (outcome === 'canceled') {
    const follows = { state: 'canceled' } as const;
    return { outcome, job: toJob(await endAttempt(tx, job, { follows, reason: null, error: input.by })) };
  }
  tx.touched.cancels = true;
  return { outcome, job: toJob(await noteWish(tx, job, input.by)) };
}

/** Records the request to cancel; a second one does not replace the first. */
async function noteWish(tx: Tx, job: JobRow, by: string): Promise<JobRow> {
  if (job.cancel_requested_at !== null) return job;
  await tx.db.run(
    'update job set cancel_requested_at = $1, reason = null, error = $2 where team_id = $3 and id = $4',
    tx.now,
    by,
    job.team_id,
    job.id,
  );
  return { ...job, cancel_requested_at: tx.now, reason: null, error: by };
}

export async function endCanceled(tx: Tx, { held }: { held: Held }): Promise<void> {
  const { job } = await lockHeld(tx, held);
  if (job.cancel_requested_at === null) throw new Error(`Nobody has canceled job ${job.id}`);
  await endAttempt(tx, job, { follows: { state: 'canceled' }, reason: null, error: job.error });
}

export async function runNow(
  tx: Tx,
  at: { teamId: string; id: string },
): ReturnType<JobOperations['runNow']> {
  const job = await tx.db.get<JobRow>(
    'select * from job where team_id = $1 and id = $2 for update',
    at.teamId,
    at.id,
  );
  if (job === undefined) return undefined;
  if (!isWaiting(job.state)) return { outcome: 'not_waiting', job: toJob(job) };
  // A job that has been due for a while keeps its place in the queue.
  const due = { ...job, run_at: Math.min(job.run_at, tx.now) };
  await tx.db.run(
    'update job set run_at = $1 where team_id = $2 and id = $3',
    due.run_at,
    job.team_id,
    job.id,
  );
  tx.touched.jobs = true;
  return { outcome: 'due', job: toJob(due) };
}
