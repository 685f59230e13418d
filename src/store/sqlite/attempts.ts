/** Attempts: taking jobs, holding them, and every way to let go of one but publishing. */
import {
  type AfterFailure,
  afterCrash,
  type FailureReason,
  type Held,
  type Job,
  type ProcessMark,
} from '../../model/job.ts';
import type { Abandoned, ClaimedJob } from '../store.ts';
import { appendJobEvent, heldJob, type JobRow, moveUp, toJob } from './jobs.ts';
import type { Tx, View } from './transaction.ts';
import { toWorkflow, type WorkflowRow, workflowRow } from './workflows.ts';

/** An error is stored whole; in an event, whose body must stay under 20 kB, this many characters of it. */
const MAX_EVENT_ERROR = 2_000;

export function claim(
  tx: Tx,
  { nodeId, limit, leaseMs }: { nodeId: string; limit: number; leaseMs: number },
): ClaimedJob[] {
  return dueJobs(tx, limit).map((due) => {
    const job = tx.db.get<JobRow>(
      `update job
       set state = 'running', attempt = attempt + 1, node_id = ?, lease_until = ?,
           process_pid = null, process_started_at = null, started_at = coalesce(started_at, ?)
       where team_id = ? and id = ? and attempt = ? and state in ('queued', 'retrying')
       returning *`,
      nodeId,
      tx.now + leaseMs,
      tx.now,
      due.team_id,
      due.id,
      due.attempt,
    ) as JobRow;
    if (due.started_at === null) appendJobEvent(tx, job, 'workflow_started');
    const workflow = workflowRow(tx, job.team_id, job.workflow_id) as WorkflowRow;
    return {
      job: toJob(job),
      workflow: toWorkflow(workflow),
      state: workflow.state === null ? null : JSON.parse(workflow.state),
    };
  });
}

/** Served by the index `job_due`, whose condition it repeats. */
function dueJobs(tx: Tx, limit: number): JobRow[] {
  return tx.db.all<JobRow>(
    `select job.* from job
     join workflow on workflow.team_id = job.team_id and workflow.id = job.workflow_id
     where job.state in ('queued', 'retrying') and job.slot = 0 and job.run_at <= ?
       and workflow.archived_at is null and workflow.paused_at is null
     order by job.run_at, job.id limit ?`,
    tx.now,
    limit,
  );
}

export function setProcess(tx: Tx, { held, process }: { held: Held; process: ProcessMark | null }): void {
  heldJob(tx, held);
  tx.db.run(
    'update job set process_pid = ?, process_started_at = ? where team_id = ? and id = ?',
    process?.pid ?? null,
    process?.startedAt ?? null,
    held.teamId,
    held.jobId,
  );
}

export function beat(
  tx: Tx,
  { nodeId, held, leaseMs }: { nodeId: string; held: readonly Held[]; leaseMs: number },
): { lost: string[] } {
  const lost = held.filter(({ teamId, jobId, attempt }) => {
    const renewed = tx.db.run(
      `update job set lease_until = ?
       where team_id = ? and id = ? and attempt = ? and state = 'running' and node_id = ?`,
      tx.now + leaseMs,
      teamId,
      jobId,
      attempt,
      nodeId,
    );
    return renewed === 0;
  });
  return { lost: lost.map(({ jobId }) => jobId) };
}

export function fail(
  tx: Tx,
  input: { held: Held; reason: FailureReason; error: string; failures: number; then: AfterFailure },
): void {
  const { held, reason, error, failures, then } = input;
  const job = heldJob(tx, held);
  letGo(tx, job, { reason, error, failures, crashes: job.crashes, then });
}

export function release(tx: Tx, { held }: { held: readonly Held[] }): void {
  for (const { teamId, jobId, attempt } of held) {
    tx.db.run(
      `update job
       set state = 'retrying', run_at = ?, node_id = null, lease_until = null,
           process_pid = null, process_started_at = null
       where team_id = ? and id = ? and attempt = ? and state = 'running'`,
      tx.now,
      teamId,
      jobId,
      attempt,
    );
  }
  tx.touched.jobs = true;
}

export function abandoned(view: View, { nodeId }: { nodeId: string | null }): Abandoned[] {
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
      process:
        row.process_pid === null || row.process_started_at === null
          ? null
          : { pid: row.process_pid, startedAt: row.process_started_at },
    }));
}

export function reclaim(tx: Tx, { held, error }: { held: Held; error: string }): Job | undefined {
  const job = tx.db.get<JobRow>(
    `select * from job where team_id = ? and id = ? and attempt = ? and state = 'running'`,
    held.teamId,
    held.jobId,
    held.attempt,
  );
  if (job === undefined) return undefined;
  const crashes = job.crashes + 1;
  const then = afterCrash({ origin: job.origin, crashes, nowMs: tx.now });
  return toJob(letGo(tx, job, { reason: 'lost', error, failures: job.failures, crashes, then }));
}

/** Ends an attempt that came to nothing, and the job with it if `then` says so. */
function letGo(
  tx: Tx,
  job: JobRow,
  end: { reason: FailureReason; error: string; failures: number; crashes: number; then: AfterFailure },
): JobRow {
  const { reason, error, failures, crashes, then } = end;
  const ended = tx.db.get<JobRow>(
    `update job
     set state = ?, run_at = ?, reason = ?, error = ?, failures = ?, crashes = ?, finished_at = ?,
         node_id = null, lease_until = null, process_pid = null, process_started_at = null
     where team_id = ? and id = ? returning *`,
    then.state,
    then.state === 'retrying' ? then.runAt : job.run_at,
    reason,
    error,
    failures,
    crashes,
    then.state === 'failed' ? tx.now : null,
    job.team_id,
    job.id,
  ) as JobRow;
  tx.touched.jobs = true;
  if (then.state === 'failed') {
    const shown = error.slice(0, MAX_EVENT_ERROR);
    appendJobEvent(tx, ended, 'workflow_failed', { reason, error: shown, attempt: job.attempt });
    moveUp(tx, ended);
  }
  return ended;
}
