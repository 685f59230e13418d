/** Running attempts: heartbeats, and how they end other than by publishing or cancellation. */
import { afterCrash, afterRelease, type Held, type Job } from '../../model/job.ts';
import type { Abandoned, JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { endAttempt } from './end-attempt.ts';
import { heldJob, runningJob } from './jobs.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof JobOperations> = Parameters<JobOperations[Name]>[0];

export function setProcess(tx: Tx, { held, process }: Input<'setProcess'>): void {
  heldJob(tx, held);
  tx.db.run(
    'update job set process_pid = ?, process_started_at = ? where team_id = ? and id = ?',
    process?.pid ?? null,
    process?.startedAt ?? null,
    held.teamId,
    held.jobId,
  );
}

export function beat(tx: Tx, { nodeId, held, leaseMs }: Input<'beat'>): { lost: Held[]; canceled: Held[] } {
  const lost: Held[] = [];
  const canceled: Held[] = [];
  for (const { teamId, jobId, attempt } of held) {
    const renewed = tx.db.get<{ cancel_requested_at: number | null }>(
      `update job set lease_until = ?
       where team_id = ? and id = ? and attempt = ? and state = 'running' and node_id = ?
       returning cancel_requested_at`,
      tx.now + leaseMs,
      teamId,
      jobId,
      attempt,
      nodeId,
    );
    if (renewed === undefined) lost.push({ teamId, jobId, attempt });
    else if (renewed.cancel_requested_at !== null) canceled.push({ teamId, jobId, attempt });
  }
  return { lost, canceled };
}

export function fail(tx: Tx, { held, then: follows, ...end }: Input<'fail'>): void {
  endAttempt(tx, heldJob(tx, held), { ...end, follows });
}

export function release(tx: Tx, { held }: Input<'release'>): void {
  for (const one of held) {
    const job = runningJob(tx, one);
    if (job === undefined) continue;
    const follows = afterRelease({ origin: job.origin, nowMs: tx.now });
    if (follows.state === 'retrying') {
      // This attempt did not fail: the job keeps the reason and error of an earlier one that did.
      endAttempt(tx, job, { follows, reason: job.reason, error: job.error });
      continue;
    }
    endAttempt(tx, job, {
      follows,
      reason: 'lost',
      error: 'The server that had the records of this push was stopped',
    });
  }
}

export function abandoned(view: View, { nodeId }: Input<'abandoned'>): Abandoned[] {
  return view.db
    .all<JobRow>(
      `select * from job indexed by job_running
       where state = 'running' and (node_id = ? or lease_until < ?) order by lease_until, id`,
      nodeId,
      view.now,
    )
    .map((row) => ({
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

export function reclaim(tx: Tx, { held, nodeId, error }: Input<'reclaim'>): Job | undefined {
  const job = runningJob(tx, held);
  // Checked again: its holder may have sent a heartbeat since.
  const isAbandoned = job?.node_id === nodeId || (job?.lease_until ?? tx.now) < tx.now;
  if (job === undefined || !isAbandoned) return undefined;
  const crashes = job.crashes + 1;
  const follows = afterCrash({ origin: job.origin, crashes, nowMs: tx.now });
  return toJob(endAttempt(tx, job, { reason: 'lost', error, crashes, follows }));
}
