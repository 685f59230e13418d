/** Pushes: jobs that run from the start, because their caller already has the records. */
import type { ClaimedJob, JobOperations } from '../job-operations.ts';
import { type JobRow, newJob, toJob } from '../job-row.ts';
import type { Tx } from '../sql.ts';
import type { WorkflowRow } from '../workflow-row.ts';
import { toWorkflow } from '../workflow-row.ts';
import { endAbandoned, isOverdue } from './attempts.ts';
import {
  appendJobEvent,
  heldJob,
  insertJob,
  lockRunning,
  remember,
  remembered,
  unfinishedJobs,
} from './jobs.ts';
import { lockWorkflow } from './workflows.ts';

type BeginInput = Parameters<JobOperations['begin']>[0];

export async function begin(tx: Tx, input: BeginInput): ReturnType<JobOperations['begin']> {
  const [row, earlier, unfinished] = await Promise.all([
    lockWorkflow(tx, input.teamId, input.workflowId),
    remembered(tx, input, 'jobs.begin'),
    unfinishedJobs(tx, input),
  ]);
  if (row === undefined || row.archived_at !== null) return { outcome: 'not_found' };
  // The idempotency key is stored with a job that may still fail: it only counts once the job has published.
  if (earlier?.state === 'finished') return { outcome: 'replayed', job: toJob(earlier), sent: earlier.sent };
  const workflow = toWorkflow(row);
  if (workflow.definition.source.type !== 'push') return { outcome: 'not_push' };
  if (workflow.pausedAt !== null) return { outcome: 'paused' };

  const inTheWay: JobRow[] = [];
  for (const job of unfinished) if (!(await endIfLost(tx, job))) inTheWay.push(job);
  const last = inTheWay.at(-1);
  if (last !== undefined) return { outcome: 'occupied', job: toJob(last) };
  return { outcome: 'begun', claimed: await start(tx, input, row) };
}

/** The reaper does the same, but only where a server runs; `flowhook data import` works without one. */
async function endIfLost(tx: Tx, job: JobRow): Promise<boolean> {
  if (!isLost(tx, job)) return false;
  // Checked again under the lock: its holder may have renewed the lease at this moment.
  const held = { teamId: job.team_id, jobId: job.id, attempt: job.attempt };
  const locked = await lockRunning(tx, held);
  if (locked === undefined || !isLost(tx, locked.job)) return false;
  const error = 'The process that had the records of this push ended without a word';
  await endAbandoned(tx, locked.job, error);
  return true;
}

function isLost(tx: Tx, job: JobRow): boolean {
  return job.origin === 'push' && isOverdue(tx, job);
}

export async function noteSent(
  tx: Tx,
  { held, sent }: Parameters<JobOperations['noteSent']>[0],
): Promise<void> {
  const { workflow_id: workflowId } = await heldJob(tx, held);
  await tx.db.run(
    `update idempotency set sent = $4
     where team_id = $1 and operation = 'jobs.begin' and target = $2 and result_id = $3`,
    held.teamId,
    workflowId,
    held.jobId,
    sent,
  );
}

async function start(tx: Tx, input: BeginInput, row: WorkflowRow): Promise<ClaimedJob> {
  const workflow = toWorkflow(row);
  const { priority } = workflow.definition;
  const queued = newJob(tx, { ...input, origin: 'push', slot: 0, priority });
  const job: JobRow = {
    ...queued,
    state: 'running',
    attempt: 1,
    node_id: input.nodeId,
    lease_until: tx.now + input.leaseMs,
    started_at: tx.now,
  };
  appendJobEvent(tx, queued, 'workflow_queued');
  appendJobEvent(tx, job, 'workflow_started');
  await Promise.all([insertJob(tx, job), remember(tx, input, 'jobs.begin', job.id)]);
  return { job: toJob(job), workflow, state: row.state === null ? null : JSON.parse(row.state) };
}
