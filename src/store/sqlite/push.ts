/** Pushes: jobs that run at once in the process that received their records. */
import type { Definition } from '../../model/workflow.ts';
import type { ClaimedJob, JobOperations } from '../job-operations.ts';
import { type JobRow, toJob } from '../job-row.ts';
import { toWorkflow } from '../workflow-row.ts';
import { reclaim } from './attempts.ts';
import { appendJobEvent, heldJob, insertJob, jobOfKey, rememberJob, unfinishedJobs } from './jobs.ts';
import type { Tx } from './transaction.ts';
import { type WorkflowRow, workflowRow } from './workflows.ts';

type BeginInput = Parameters<JobOperations['begin']>[0];

export function begin(tx: Tx, input: BeginInput): Awaited<ReturnType<JobOperations['begin']>> {
  const row = workflowRow(tx, input.teamId, input.workflowId);
  if (row === undefined || row.archived_at !== null) return { outcome: 'not_found' };
  // The key is stored with a job that may still fail: it counts only once that job has finished.
  const earlier = jobOfKey(tx, input, 'jobs.begin');
  if (earlier?.state === 'finished') return { outcome: 'replayed', job: toJob(earlier), sent: earlier.sent };
  const workflow = toWorkflow(row);
  if (workflow.definition.source.type !== 'push') return { outcome: 'not_push' };
  if (workflow.pausedAt !== null) return { outcome: 'paused' };

  for (const job of unfinishedJobs(tx, input)) endIfLost(tx, job);
  const inTheWay = unfinishedJobs(tx, input).at(-1);
  if (inTheWay !== undefined) return { outcome: 'occupied', job: toJob(inTheWay) };
  return { outcome: 'begun', claimed: start(tx, input, row) };
}

export function noteSent(tx: Tx, { held, sent }: Parameters<JobOperations['noteSent']>[0]): void {
  tx.db.run(
    `update idempotency set sent = ? where team_id = ? and operation = 'jobs.begin' and target = ? and result_id = ?`,
    sent,
    held.teamId,
    heldJob(tx, held).workflow_id,
    held.jobId,
  );
}

/** The server's reaper does the same, but `flowhook data import` also works without a server. */
function endIfLost(tx: Tx, job: JobRow): void {
  if (job.origin !== 'push' || job.lease_until === null || job.lease_until >= tx.now) return;
  const held = { teamId: job.team_id, jobId: job.id, attempt: job.attempt };
  reclaim(tx, {
    held,
    nodeId: null,
    error: 'The process that had the records of this push ended without a word',
  });
}

function start(tx: Tx, input: BeginInput, workflow: WorkflowRow): ClaimedJob {
  const queued = insertJob(tx, {
    ...input,
    origin: 'push',
    slot: 0,
    priority: (JSON.parse(workflow.definition) as Definition).priority,
  });
  rememberJob(tx, input, 'jobs.begin', queued.id);
  appendJobEvent(tx, queued, 'workflow_queued');
  const job = tx.db.get<JobRow>(
    `update job set state = 'running', attempt = 1, node_id = ?, lease_until = ?, started_at = ?
     where team_id = ? and id = ? returning *`,
    input.nodeId,
    tx.now + input.leaseMs,
    tx.now,
    queued.team_id,
    queued.id,
  ) as JobRow;
  appendJobEvent(tx, job, 'workflow_started');
  return {
    job: toJob(job),
    workflow: toWorkflow(workflow),
    state: workflow.state === null ? null : JSON.parse(workflow.state),
  };
}
