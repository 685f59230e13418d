/** Jobs: queueing them, reading them, and what their other operations share (the fence, slots, events, keys). */
import { FencedError } from '../../model/error.ts';
import { type EventType, jobData } from '../../model/event.ts';
import type { Held, Job } from '../../model/job.ts';
import type { Overlap, Source } from '../../model/workflow.ts';
import { traceOfAttempt } from '../../observe/trace-context.ts';
import { REMEMBERED_MS } from '../idempotent-call.ts';
import type { Enqueued, JobOperations } from '../job-operations.ts';
import { type JobRow, newJob, toJob } from '../job-row.ts';
import { appendEvent } from './events.ts';
import { remember } from './idempotency.ts';
import type { Tx, View } from './transaction.ts';

type EnqueueInput = Parameters<JobOperations['enqueue']>[0];

export function enqueue(tx: Tx, input: EnqueueInput): Enqueued {
  const { teamId, workflowId } = input;
  const workflow = tx.db.get<{
    paused_at: number | null;
    overlap: Overlap;
    source: Source['type'];
    priority: number;
  }>(
    `select paused_at, json_extract(definition, '$.overlap') as overlap,
            json_extract(definition, '$.source.type') as source,
            json_extract(definition, '$.priority') as priority
     from workflow where team_id = ? and id = ? and archived_at is null`,
    teamId,
    workflowId,
  );
  if (workflow === undefined) return { outcome: 'not_found' };
  const earlier = jobOfKey(tx, input, 'jobs.enqueue');
  if (earlier !== undefined) return { outcome: 'replayed', job: toJob(earlier) };
  if (workflow.source === 'push') return { outcome: 'receives_push' };
  if (workflow.paused_at !== null) return { outcome: 'paused' };

  // SQLite has one writer, so nothing can take a slot between this read and the insert; the unique index would refuse
  // it anyway.
  const unfinished = unfinishedJobs(tx, input);
  const slots = workflow.overlap === 'buffer' ? [0, 1] : [0];
  const slot = slots.find((candidate) => unfinished.every((job) => job.slot !== candidate));
  const last = unfinished.at(-1);
  // A job in slot 1 always has one before it in slot 0, so a free slot 0 means that there is none at all.
  if (slot === undefined && last !== undefined) return { outcome: 'occupied', job: toJob(last) };
  const job = insertJob(tx, { ...input, slot: slot ?? 0, priority: workflow.priority });
  rememberJob(tx, input, 'jobs.enqueue', job.id);
  appendJobEvent(tx, job, 'workflow_queued');
  tx.touched.jobs = true;
  return { outcome: 'queued', job: toJob(job) };
}

/**
 * The workflow's unfinished jobs, by slot: at most one in each. Names the index, here and below, because the planner
 * would scan all jobs that the workflow ever had.
 */
export function unfinishedJobs(
  tx: Tx,
  { teamId, workflowId }: { teamId: string; workflowId: string },
): JobRow[] {
  return tx.db.all<JobRow>(
    `select * from job indexed by job_slot
     where team_id = ? and workflow_id = ? and finished_at is null order by slot`,
    teamId,
    workflowId,
  );
}

/** Returns the row as it was composed: reading it back with `returning` took as long as inserting it. */
export function insertJob(tx: Tx, input: Parameters<typeof newJob>[1]): JobRow {
  const job = newJob(tx, input);
  tx.db.run(
    `insert into job (team_id, id, workflow_id, slot, state, origin, priority, run_at, created_at, trace)
     values (?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?)`,
    job.team_id,
    job.id,
    job.workflow_id,
    job.slot,
    job.origin,
    job.priority,
    job.run_at,
    job.created_at,
    job.trace,
  );
  return job;
}

/** A call with an idempotency key. */
type Keyed = Omit<EnqueueInput, 'origin' | 'trace'>;

/** The job that a call with this key created within the last 24 h. */
export function jobOfKey(
  tx: Tx,
  { teamId, workflowId, idempotencyKey }: Keyed,
  operation: 'jobs.enqueue' | 'jobs.begin',
): (JobRow & { sent: string | null }) | undefined {
  if (idempotencyKey === null) return undefined;
  return tx.db.get<JobRow & { sent: string | null }>(
    `select job.*, idempotency.sent from idempotency
     join job on job.team_id = idempotency.team_id and job.id = idempotency.result_id
     where idempotency.team_id = ? and operation = ? and target = ? and key = ?
       and idempotency.created_at > ?`,
    teamId,
    operation,
    workflowId,
    idempotencyKey,
    tx.now - REMEMBERED_MS,
  );
}

/** Remembers the job that a call with this key has created. */
export function rememberJob(
  tx: Tx,
  { teamId, workflowId, idempotencyKey }: Keyed,
  operation: 'jobs.enqueue' | 'jobs.begin',
  jobId: string,
): void {
  if (idempotencyKey === null) return;
  remember(tx, { teamId, operation, target: workflowId, key: idempotencyKey, sent: null }, jobId);
}

export function get(view: View, at: { teamId: string; id: string }): Job | undefined {
  const row = jobRow(view, at);
  return row && toJob(row);
}

export function jobRow(view: View, { teamId, id }: { teamId: string; id: string }): JobRow | undefined {
  return view.db.get<JobRow>('select * from job where team_id = ? and id = ?', teamId, id);
}

/** The fence: the job if this attempt is the one running, else FencedError. */
export function heldJob(view: View, held: Held): JobRow {
  const row = runningJob(view, held);
  if (row === undefined) {
    throw new FencedError(`Attempt ${held.attempt} of job ${held.jobId} does not run any more`);
  }
  return row;
}

/** The job if this attempt is the one running, else undefined. */
export function runningJob(view: View, held: Held): JobRow | undefined {
  return view.db.get<JobRow>(
    `select * from job where team_id = ? and id = ? and attempt = ? and state = 'running'`,
    held.teamId,
    held.jobId,
    held.attempt,
  );
}

/** Moves the buffered job behind an ended one up into its slot, so that it can be claimed. */
export function moveUp(tx: Tx, ended: JobRow): void {
  tx.db.run(
    `update job indexed by job_slot set slot = 0, run_at = max(run_at, ?)
     where team_id = ? and workflow_id = ? and slot = 1 and finished_at is null`,
    tx.now,
    ended.team_id,
    ended.workflow_id,
  );
  tx.touched.jobs = true;
}

/** Appends an event about a job with the facts of this row; `more` is added to its data. */
export function appendJobEvent(
  tx: Tx,
  job: JobRow,
  type: EventType,
  more: Record<string, unknown> = {},
): void {
  const facts = jobData({
    workflowId: job.workflow_id,
    jobId: job.id,
    state: job.state,
    queuedAt: job.created_at,
    startedAt: job.started_at,
    finishedAt: job.finished_at,
  });
  appendEvent(tx, {
    teamId: job.team_id,
    type,
    workflowId: job.workflow_id,
    jobId: job.id,
    finishedAt: job.finished_at,
    data: { ...facts, ...more },
    trace: traceOfAttempt(job),
  });
}
