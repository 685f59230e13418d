/**
 * Starts the attempts of pushes, ends attempts other than by publishing, cancels jobs, and makes waiting jobs due.
 * Attempts of all other jobs start with a claim, and heartbeats renew their leases.
 */

import {
  type AfterFailure,
  type AttemptLease,
  afterCrash,
  afterRelease,
  type FailureReason,
  isWaiting,
  type Job,
  type JobOrigin,
  onCancel,
  type ProcessMark,
  type Progress,
  unlessCanceled,
} from '../../model/job.ts';
import { MAX_BACKOFF_MS, type Workflow } from '../../model/workflow.ts';
import {
  type AttemptEnd,
  type InTeam,
  JOB,
  type JobRow,
  MAX_EVENT_ERROR,
  newJob,
  stateOf,
  toJob,
  toWorkflow,
  type WorkflowRow,
} from '../rows.ts';
import type { Tx, View } from '../transaction.ts';
import { touchJobs } from './agenda.ts';
import {
  appendJobEvent,
  fenced,
  heldJob,
  insertJob,
  lockHeld,
  lockJob,
  lockRunning,
  moveUp,
  remember,
  remembered,
  unfinishedJobs,
} from './jobs.ts';
import { lockWorkflow } from './workflows.ts';

/** A job just claimed by this node, with its workflow. */
export interface ClaimedJob {
  job: Job;
  workflow: Workflow;
  /** The JSON text of the state that the last published run left (`ctx.state`); null before the first published run. */
  state: string | null;
  /** Whether an earlier attempt left records that were not published. They must be swept before others are staged. */
  hasLeftovers: boolean;
  /** Whether the quarantine of the workflow may have records, which good records with the same ids end. */
  mayRelease: boolean;
}

export function claimedJob(job: Job, workflow: WorkflowRow): ClaimedJob {
  const { stagedAdded, stagedChanged, stagedRemoved, stagedLargest } = workflow;
  const { stagedQuarantined, stagedReleased, quarantineRun } = workflow;
  const staged = [
    stagedAdded,
    stagedChanged,
    stagedRemoved,
    stagedLargest,
    stagedQuarantined,
    stagedReleased,
  ];
  // Each staged record is counted, and only publishing and sweeping reset the counters.
  const hasLeftovers = staged.some((count) => count !== 0);
  const mayRelease = quarantineRun > 0;
  return { job, workflow: toWorkflow(workflow), state: stateOf(workflow), hasLeftovers, mayRelease };
}

/**
 * The longest time that a job waits. A job dated further ahead was queued before the clock was set back, and counts as
 * due.
 */
export const LONGEST_WAIT_MS = 2 * MAX_BACKOFF_MS;

/** Whether the database has more than one team. A single team may use the whole capacity of a node. */
export async function hasSeveralTeams(view: View): Promise<boolean> {
  return (await view.db.all('select 1 from team limit 2')).length > 1;
}

/** A running job whose node is gone, and the job's child process, which may still be alive. */
export interface Abandoned {
  held: AttemptLease;
  workflowId: string;
  /** The node that claimed the job or, for a push, received it. */
  nodeId: string | null;
  origin: JobOrigin;
  process: ProcessMark | null;
}

/**
 * Starts a job of origin `push`. The job is running immediately, its lease belongs to the process that received the
 * records, and the job is never retried. A workflow whose source is not `push` returns `not_push`, unless `anySource` is
 * set.
 *
 * An earlier push whose lease has expired fails as `lost`. Any other unfinished job of the workflow makes the result
 * `occupied`. Repeating an idempotency key within 24 h returns `replayed` with the job that published under this key,
 * and with the hash stored by `noteSent`; a failed job is not replayed. Events: `workflow_queued`, `workflow_started`.
 */
export async function begin(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string;
    nodeId: string;
    leaseMs: number;
    idempotencyKey: string | null;
    trace?: string | null;
    anySource?: boolean;
  },
): Promise<
  | { outcome: 'begun'; claimed: ClaimedJob }
  | { outcome: 'replayed'; job: Job; sent: string | null }
  | { outcome: 'occupied'; job: Job }
  | { outcome: 'not_push' | 'paused' | 'not_found' }
> {
  const [row, earlier, unfinished] = await Promise.all([
    lockWorkflow(tx, input.teamId, input.workflowId),
    remembered(tx, input, 'jobs.begin'),
    unfinishedJobs(tx, input),
  ]);
  if (row === undefined || row.archivedAt !== null) return { outcome: 'not_found' };
  // The idempotency key is stored when the job starts. The key counts only if the job has published.
  if (earlier?.job.state === 'finished')
    return { outcome: 'replayed', job: toJob(earlier.job), sent: earlier.sent };
  const workflow = toWorkflow(row);
  if (workflow.definition.source.type !== 'push' && input.anySource !== true) return { outcome: 'not_push' };
  if (workflow.pausedAt !== null) return { outcome: 'paused' };

  const inTheWay: JobRow[] = [];
  for (const job of unfinished) if (!(await endIfLost(tx, job))) inTheWay.push(job);
  const last = inTheWay.at(-1);
  if (last !== undefined) return { outcome: 'occupied', job: toJob(last) };
  return { outcome: 'begun', claimed: await start(tx, input, row) };
}

/**
 * Ends a push whose lease has expired. On a server the reaper ends such pushes too, but `flowhook data import` must
 * also work without a server.
 */
async function endIfLost(tx: Tx, job: JobRow): Promise<boolean> {
  if (job.origin !== 'push' || !isOverdue(tx, job)) return false;
  // The lease is checked again after locking, because the node may have renewed it in the meantime.
  const held = { teamId: job.teamId, jobId: job.id, attempt: job.attempt };
  const locked = await lockRunning(tx, held);
  if (locked === undefined || !isOverdue(tx, locked.job)) return false;
  const error =
    'The process that received this push ended before the push was complete. Send the records again';
  await endAbandoned(tx, locked.job, error);
  return true;
}

/**
 * Stores a hash of the request of a push with an idempotency key, before the push publishes. A later push with the same
 * key is compared with this hash. Throws FencedError.
 */
export async function noteSent(tx: Tx, { held, sent }: { held: AttemptLease; sent: string }): Promise<void> {
  const { workflowId } = await heldJob(tx, held);
  await tx.db.run`
    update idempotency set sent = ${sent}
    where team_id = ${held.teamId} and operation = 'jobs.begin' and target = ${workflowId}
      and result_id = ${held.jobId}`;
}

async function start(tx: Tx, input: Parameters<typeof begin>[1], row: WorkflowRow): Promise<ClaimedJob> {
  const { priority } = toWorkflow(row).definition;
  const queued = newJob(tx, { ...input, origin: 'push', slot: 0, priority });
  const job: JobRow = {
    ...queued,
    state: 'running',
    attempt: 1,
    nodeId: input.nodeId,
    leaseUntil: tx.now + input.leaseMs,
    startedAt: tx.now,
  };
  appendJobEvent(tx, queued, 'workflow_queued');
  appendJobEvent(tx, job, 'workflow_started');
  await Promise.all([insertJob(tx, job), remember(tx, input, 'jobs.begin', job.id)]);
  return claimedJob(toJob(job), row);
}

/** Stores the child process of an attempt, or null when the process has ended. */
export async function setProcess(
  tx: Tx,
  { held, process }: { held: AttemptLease; process: ProcessMark | null },
): Promise<void> {
  const marked = await tx.db.run`
    update job set process_pid = ${process?.pid ?? null}, process_started_at = ${process?.startedAt ?? null}
    where team_id = ${held.teamId} and id = ${held.jobId} and attempt = ${held.attempt} and state = 'running'`;
  if (marked === 0) throw fenced(held);
}

/**
 * Ends a failed attempt. `then` is the next state of the job (see `model/job.ts`), unless cancellation was requested:
 * the job is then canceled. When the job ends, a buffered job of the workflow takes its slot. Event, when the job ends:
 * `workflow_failed` or `workflow_canceled`.
 */
export async function fail(
  tx: Tx,
  {
    held,
    then: follows,
    ...end
  }: {
    held: AttemptLease;
    reason: FailureReason;
    error: string;
    failures: number;
    then: AfterFailure;
  },
): Promise<void> {
  const { job } = await lockHeld(tx, held);
  await endAttempt(tx, job, { ...end, follows });
}

/**
 * Returns an attempt's job to the queue without counting a failure. A push fails instead, because its records are lost.
 */
export async function release(tx: Tx, { held }: { held: AttemptLease }): Promise<void> {
  const job = (await lockRunning(tx, held))?.job;
  if (job === undefined) return;
  const follows = afterRelease({ origin: job.origin, nowMs: tx.now });
  // Returning to the queue is not a failure, so the job keeps the reason and error of its previous failure, if any.
  const { reason, error } =
    follows.state === 'retrying'
      ? job
      : ({
          reason: 'lost',
          error: 'The server stopped before this push was complete. Send the records again',
        } as const);
  await endAttempt(tx, job, { follows, reason, error });
}

/**
 * Lists running jobs whose node is gone: all running jobs of `nodeId`, and all jobs whose lease has expired.
 *
 * The query uses the index `job_running`, which contains the running jobs of all nodes.
 */
export async function abandoned(view: View, { nodeId }: { nodeId: string | null }): Promise<Abandoned[]> {
  const rows = await view.db.all<JobRow>`
    select ${JOB} from job /* use job_running */
    where state = 'running' and (node_id = ${nodeId} or lease_until < ${view.now}) order by lease_until, id`;
  return rows.map((row) => ({
    held: { teamId: row.teamId, jobId: row.id, attempt: row.attempt },
    workflowId: row.workflowId,
    nodeId: row.nodeId,
    origin: row.origin,
    process:
      row.processPid === null || row.processStartedAt === null
        ? null
        : { pid: row.processPid, startedAt: row.processStartedAt },
  }));
}

/**
 * Ends an attempt that `abandoned` listed for this `nodeId`. `afterCrash` decides whether the job is retried or fails
 * with reason `lost`. Returns undefined if the attempt is no longer running or its lease has been renewed.
 */
export async function reclaim(
  tx: Tx,
  { held, nodeId, error }: { held: AttemptLease; nodeId: string | null; error: string },
): Promise<Job | undefined> {
  const job = (await lockRunning(tx, held))?.job;
  // The lease is checked again after locking, because the node may have renewed it in the meantime.
  if (job === undefined || !(job.nodeId === nodeId || isOverdue(tx, job))) return undefined;
  return toJob(await endAbandoned(tx, job, error));
}

/** Whether the lease of a running job has expired. */
function isOverdue({ now }: Tx, job: JobRow): boolean {
  return job.leaseUntil !== null && job.leaseUntil < now;
}

/** Ends an attempt as crashed. The caller has locked the job and its workflow. */
function endAbandoned(tx: Tx, job: JobRow, error: string): Promise<JobRow> {
  const crashes = job.crashes + 1;
  const follows = afterCrash({ origin: job.origin, crashes, nowMs: tx.now });
  return endAttempt(tx, job, { reason: 'lost', error, crashes, follows });
}

/**
 * Cancels a job. A waiting job is `canceled` immediately. For a running job the request is stored and the job's node is
 * notified (`canceling`). An `ended` job does not change. `by` is a sentence without personal data that says who
 * canceled the job; it is stored as the job's `error`. Event, when the job ends: `workflow_canceled`.
 */
export async function cancel(
  tx: Tx,
  input: { teamId: string; id: string; by: string },
): Promise<{ outcome: 'canceled' | 'canceling' | 'ended'; job: Job } | undefined> {
  const job = (await lockJob(tx, input))?.job;
  if (job === undefined) return undefined;
  const outcome = onCancel(job.state);
  if (outcome === 'ended') return { outcome, job: toJob(job) };
  if (outcome === 'canceled') {
    const follows = { state: 'canceled' } as const;
    return { outcome, job: toJob(await endAttempt(tx, job, { follows, reason: null, error: input.by })) };
  }
  tx.touched.cancels = true;
  return { outcome, job: toJob(await requestCancel(tx, job, input.by)) };
}

/** Stores the cancellation request. A second request does not replace the first. */
async function requestCancel(tx: Tx, job: JobRow, by: string): Promise<JobRow> {
  if (job.cancelRequestedAt !== null) return job;
  await tx.db.run`
    update job set cancel_requested_at = ${tx.now}, reason = null, error = ${by}
    where team_id = ${job.teamId} and id = ${job.id}`;
  return { ...job, cancelRequestedAt: tx.now, reason: null, error: by };
}

/** Ends a running attempt as canceled, after its node has stopped the run. Event: `workflow_canceled`. */
export async function endCanceled(
  tx: Tx,
  { held, progress }: { held: AttemptLease; progress?: Progress },
): Promise<void> {
  const job = reported((await lockHeld(tx, held)).job, progress);
  if (job.cancelRequestedAt === null) throw new Error(`Job ${job.id} has no cancellation request`);
  await endAttempt(tx, job, { follows: { state: 'canceled' }, reason: null, error: job.error });
}

/** Makes a waiting job due immediately; `not_waiting` if it is running or has ended. */
export async function runNow(
  tx: Tx,
  at: InTeam,
): Promise<{ outcome: 'due' | 'not_waiting'; job: Job } | undefined> {
  const job = await tx.db.get<JobRow>`
    select ${JOB} from job where team_id = ${at.teamId} and id = ${at.id} for update`;
  if (job === undefined) return undefined;
  if (!isWaiting(job.state)) return { outcome: 'not_waiting', job: toJob(job) };
  // A job that is already due keeps its due time, and so its place in the queue.
  const due = { ...job, runAt: Math.min(job.runAt, tx.now) };
  await tx.db.run`update job set run_at = ${due.runAt} where team_id = ${job.teamId} and id = ${job.id}`;
  touchJobs(tx, job.teamId, due.runAt);
  return { outcome: 'due', job: toJob(due) };
}

/**
 * Ends an attempt, or a job that is waiting for an attempt. `end.follows` is the next state of the job, unless
 * cancellation was requested: the job is then canceled, and its error still says who canceled it. The caller has locked
 * the job and its workflow.
 */
async function endAttempt(tx: Tx, job: JobRow, end: AttemptEnd): Promise<JobRow> {
  const then = unlessCanceled({ cancelRequestedAt: job.cancelRequestedAt }, end.follows);
  const canceled = then.state === 'canceled';
  const ended: JobRow = {
    ...job,
    state: then.state,
    runAt: then.state === 'retrying' ? then.runAt : job.runAt,
    reason: canceled ? null : end.reason,
    error: job.cancelRequestedAt === null ? end.error : job.error,
    failures: end.failures ?? job.failures,
    crashes: end.crashes ?? job.crashes,
    finishedAt: then.state === 'retrying' ? null : tx.now,
    progress: withoutMessage(job.progress),
    nodeId: null,
    leaseUntil: null,
    processPid: null,
    processStartedAt: null,
  };
  touchJobs(tx, job.teamId, then.state === 'retrying' ? then.runAt : tx.now);
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

/** The job with the last progress that its attempt has reported. */
export function reported(job: JobRow, progress: Progress | undefined): JobRow {
  return progress === undefined ? job : { ...job, progress: JSON.stringify(progress) };
}

/**
 * The progress to show after an attempt has ended. It keeps how far the attempt came, and drops what the attempt was
 * doing.
 */
export function withoutMessage(progress: string | null): string | null {
  return progress === null ? null : JSON.stringify({ ...JSON.parse(progress), message: null });
}

async function save(tx: Tx, ended: JobRow): Promise<void> {
  await tx.db.run`
    update job
    set state = ${ended.state}, run_at = ${ended.runAt}, reason = ${ended.reason}, error = ${ended.error},
      failures = ${ended.failures}, crashes = ${ended.crashes}, finished_at = ${ended.finishedAt},
      progress = ${ended.progress}, node_id = null, lease_until = null, process_pid = null,
      process_started_at = null
    where team_id = ${ended.teamId} and id = ${ended.id}`;
}
