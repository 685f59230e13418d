/** Attempts: every way to end one, except publishing and canceling. `beat.ts` renews their leases. */
import {
  type AfterFailure,
  afterCrash,
  afterRelease,
  type FailureReason,
  type Held,
  type Job,
  type ProcessMark,
} from '../../model/job.ts';
import type { Abandoned } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import type { Tx, View } from '../sql.ts';
import { endAttempt } from './end-attempt.ts';
import { fenced, lockHeld, lockRunning } from './jobs.ts';

export async function setProcess(
  tx: Tx,
  { held, process }: { held: Held; process: ProcessMark | null },
): Promise<void> {
  const marked = await tx.db.run(
    `update job set process_pid = $1, process_started_at = $2
     where team_id = $3 and id = $4 and attempt = $5 and state = 'running'`,
    process?.pid ?? null,
    process?.startedAt ?? null,
    held.teamId,
    held.jobId,
    held.attempt,
  );
  if (marked === 0) throw fenced(held);
}

export async function fail(
  tx: Tx,
  input: { held: Held; reason: FailureReason; error: string; failures: number; then: AfterFailure },
): Promise<void> {
  const { held, then: follows, ...end } = input;
  const { job } = await lockHeld(tx, held);
  await endAttempt(tx, job, { ...end, follows });
}

/** Gives one attempt back, so that the job can be retried without counting a failure. */
export async function release(tx: Tx, { held }: { held: Held }): Promise<void> {
  const job = (await lockRunning(tx, held))?.job;
  if (job === undefined) return;
  const follows = afterRelease({ origin: job.origin, nowMs: tx.now });
  if (follows.state === 'retrying') {
    // Nothing went wrong: the reason and error of an earlier failure stay.
    await endAttempt(tx, job, { follows, reason: job.reason, error: job.error });
    return;
  }
  await endAttempt(tx, job, {
    follows,
    reason: 'lost',
    error: 'The server that had the records of this push was stopped',
  });
}

/** Uses the index `job_running`, which holds the running jobs of all nodes. */
export async function abandoned(view: View, { nodeId }: { nodeId: string | null }): Promise<Abandoned[]> {
  const rows = await view.db.all<JobRow>(
    `select * from job /* use job_running */
     where state = 'running' and (node_id = $1 or lease_until < $2) order by lease_until, id`,
    nodeId,
    view.now,
  );
  return rows.map((row) => ({
    held: { teamId: row.team_id, jobId: row.id, attempt: row.attempt },
    workflowId: row.workflow_id,
    nodeId: row.node_id,
    origin: row.origin,
    process:
      row.process_pid === null || row.process_started_at === null
        ? null
        : { pid: row.process_pid, startedAt: row.process_started_at },
  }));
}

export async function reclaim(
  tx: Tx,
  { held, nodeId, error }: { held: Held; nodeId: string | null; error: string },
): Promise<Job | undefined> {
  const job = (await lockRunning(tx, held))?.job;
  // Checked again under the lock: its holder may have renewed the lease since.
  if (job === undefined || !(job.node_id === nodeId || isOverdue(tx, job))) return undefined;
  return toJob(await endAbandoned(tx, job, error));
}

/** Whether the lease of a running job has expired. */
export function isOverdue({ now }: Tx, job: JobRow): boolean {
  return job.lease_until !== null && job.lease_until < now;
}

/** Ends an attempt as crashed. The job and its workflow are locked by now. */
export function endAbandoned(tx: Tx, job: JobRow, error: string): Promise<JobRow> {
  const crashes = job.crashes + 1;
  const follows = afterCrash({ origin: job.origin, crashes, nowMs: tx.now });
  return endAttempt(tx, job, { reason: 'lost', error, crashes, follows });
}
