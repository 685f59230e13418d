/**
 * Queues jobs (by calls and by schedules), reads jobs, and contains the locks and events that every change of a job
 * needs.
 *
 * Locks are always taken in the same order: the row of the workflow, then the rows of its jobs, and last, when events
 * are written, the row of the team. While the row of a workflow is locked, no other transaction queues or ends jobs of
 * this workflow. A free slot therefore stays free, and no waiting job is left behind in the second slot.
 */

import { FencedError } from '../../model/error.ts';
import { type EventType, jobData } from '../../model/event.ts';
import type { AttemptLease, Job, JobOrigin } from '../../model/job.ts';
import type { Definition, Schedule, WorkflowRef } from '../../model/workflow.ts';
import { traceOfAttempt } from '../../observe/trace-context.ts';
import {
  camelCase,
  type InTeam,
  JOB,
  type JobRow,
  newJob,
  OF_JOB,
  toJob,
  UNFINISHED,
  WORKFLOW,
  type WorkflowRow,
} from '../rows.ts';
import { type ColumnType, insertAll, Part } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { touchJobs } from './agenda.ts';
import { appendEvent } from './events.ts';
import { forget, REMEMBERED_MS } from './idempotency.ts';

/** The result of queueing a job. With `occupied`, `job` is the job that occupies the workflow's slot. */
export type Enqueued =
  | { outcome: 'queued'; job: Job }
  | { outcome: 'replayed'; job: Job }
  | { outcome: 'occupied'; job: Job }
  /** `receives_push`: the workflow's source is `push`, so there is nothing to run. Callers send the records instead. */
  | { outcome: 'receives_push' | 'paused' | 'not_found' };

/**
 * Queues a job unless the workflow has an unfinished one (with `overlap: buffer`: two). Exactly one of several
 * simultaneous calls gets the slot. Repeating an idempotency key within 24 h returns `replayed` with the job of the
 * first call that returned `queued`; a call that returned `occupied` does not store its key. Event: `workflow_queued`.
 */
export async function enqueue(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string;
    origin: JobOrigin;
    idempotencyKey: string | null;
    /** The trace of the job and its events, as a `traceparent` header. */
    trace?: string | null;
  },
): Promise<Enqueued> {
  const [workflow, earlier, known] = await Promise.all([
    tx.db.pick({ sqlite: readCallable, postgres: lockCallable })(tx, input),
    remembered(tx, input, 'jobs.enqueue'),
    tx.db.pick({ sqlite: async () => undefined, postgres: unfinishedJobs })(tx, input),
  ]);
  if (workflow === undefined) return { outcome: 'not_found' };
  if (earlier !== undefined) return { outcome: 'replayed', job: toJob(earlier.job) };
  const { sourceType, overlap, priority, pausedAt } = workflow;
  if (sourceType === 'push') return { outcome: 'receives_push' };
  if (pausedAt !== null) return { outcome: 'paused' };

  const job = newJob(tx, { ...input, slot: 0, priority });
  const isInserted = known === undefined && (await insertFirst(tx, job));
  const [first, second] = isInserted ? [] : (known ?? (await unfinishedJobs(tx, input)));
  // A job in slot 1 always waits behind a job in slot 0. If slot 0 is free, the workflow has no unfinished job.
  if (first !== undefined) {
    if (overlap !== 'buffer' || second !== undefined)
      return { outcome: 'occupied', job: toJob(second ?? first) };
    job.slot = 1;
  }
  appendJobEvent(tx, job, 'workflow_queued');
  await Promise.all([
    isInserted ? undefined : insertJob(tx, job),
    remember(tx, input, 'jobs.enqueue', job.id),
  ]);
  touchJobs(tx, job.teamId, job.runAt);
  return { outcome: 'queued', job: toJob(job) };
}

/** What decides whether a job of a workflow can be queued. */
interface Callable extends Pick<Definition, 'overlap' | 'priority'> {
  sourceType: Definition['source']['type'];
  pausedAt: number | null;
}

/**
 * Returns undefined if there is no such workflow, or if it is archived. SQLite reads only the index, not the long rows
 * of workflows.
 */
function readCallable({ db }: Tx, { teamId, workflowId }: WorkflowRef): Promise<Callable | undefined> {
  return db.get<Callable>`
    select paused_at as "pausedAt", definition ->> '$.source.type' as "sourceType",
      definition ->> '$.overlap' as overlap, definition ->> '$.priority' as priority
    from workflow /* use workflow_listed */
    where team_id = ${teamId} and id = ${workflowId} and archived_at is null`;
}

/** Like `readCallable`, but also locks the workflow. */
async function lockCallable(
  { db, locked }: Tx,
  { teamId, workflowId }: WorkflowRef,
): Promise<Callable | undefined> {
  const row =
    locked?.workflow ??
    (await db.get<Pick<WorkflowRow, 'pausedAt' | 'archivedAt' | 'definition'>>`
      select paused_at as "pausedAt", archived_at as "archivedAt", definition from workflow where team_id = ${teamId}
        and id = ${workflowId} for update`);
  if (row === undefined || row.archivedAt !== null) return undefined;
  const { source, overlap, priority } = JSON.parse(row.definition) as Definition;
  return { sourceType: source.type, overlap, priority, pausedAt: row.pausedAt };
}

/** Returns the workflow's unfinished jobs, ordered by slot. Each slot has at most one. */
export function unfinishedJobs(tx: Tx, { teamId, workflowId }: WorkflowRef): Promise<JobRow[]> {
  const { workflow, unfinished } = tx.locked ?? {};
  if (unfinished !== undefined && workflow?.id === workflowId) return Promise.resolve(unfinished);
  return tx.db.all<JobRow>`
    select ${JOB} from job /* use job_slot */
    where team_id = ${teamId} and workflow_id = ${workflowId} and ${UNFINISHED} order by slot`;
}

/** Inserts a new job, either immediately or at the end of the transaction (see `tx.jobs`). */
export async function insertJob(tx: Tx, job: JobRow): Promise<void> {
  if (tx.jobs === undefined) await writeJobs(tx, [job]);
  else tx.jobs.push(job);
}

export async function writeJobs({ db }: Tx, jobs: readonly JobRow[]): Promise<void> {
  const rows = jobs.map((job) => NEW_FIELDS.map((field) => job[field]));
  await insertAll(db, 'job', NEW_COLUMNS, rows);
}

const NEW_COLUMNS = {
  team_id: 'text',
  id: 'text',
  workflow_id: 'text',
  slot: 'integer',
  state: 'text',
  origin: 'text',
  priority: 'integer',
  attempt: 'integer',
  run_at: 'bigint',
  node_id: 'text',
  lease_until: 'bigint',
  created_at: 'bigint',
  started_at: 'bigint',
  trace: 'text',
} as const satisfies Record<string, ColumnType>;
const NEW_FIELDS = Object.keys(NEW_COLUMNS).map(camelCase) as (keyof JobRow)[];

/**
 * Inserts a job into slot 0 of its workflow, unless this slot is occupied. Returns whether it was inserted. SQLite looks
 * for the slot in any case when it inserts; looking for unfinished jobs before that took 8 % of the writer's processor
 * time for a queue call.
 */
async function insertFirst({ db }: Tx, job: JobRow): Promise<boolean> {
  return (await db.run(INSERT_FIRST, ...NEW_FIELDS.map((field) => job[field]))) === 1;
}

const INSERT_FIRST = `
  insert into job (${Object.keys(NEW_COLUMNS)}) values (${NEW_FIELDS.map((_, at) => `$${at + 1}`)})
  on conflict (team_id, workflow_id, slot) where finished_at is null do nothing`;

/** The fields of a call that identify its idempotency key. */
type Keyed = Omit<Parameters<typeof enqueue>[1], 'origin' | 'trace'>;

/** Returns the job that a call with the same idempotency key created within the last 24 h. */
export async function remembered(
  tx: Tx,
  { teamId, workflowId, idempotencyKey }: Keyed,
  operation: 'jobs.enqueue' | 'jobs.begin',
): Promise<{ job: JobRow; sent: string | null } | undefined> {
  if (idempotencyKey === null) return undefined;
  const row = await tx.db.get<JobRow & { sent: string | null }>`
    select ${OF_JOB}, idempotency.sent from idempotency
    join job on job.team_id = idempotency.team_id and job.id = idempotency.result_id
    where idempotency.team_id = ${teamId} and operation = ${operation} and target = ${workflowId}
      and key = ${idempotencyKey}
      and idempotency.created_at > ${tx.now - REMEMBERED_MS}`;
  if (row === undefined) return undefined;
  const { sent, ...job } = row;
  return { job, sent };
}

/** Stores which job a call with an idempotency key created, and deletes expired keys of the team. */
export async function remember(
  tx: Tx,
  { teamId, workflowId, idempotencyKey }: Keyed,
  operation: 'jobs.enqueue' | 'jobs.begin',
  jobId: string,
): Promise<void> {
  if (idempotencyKey === null) return;
  await Promise.all([
    tx.db.run`
      insert into idempotency (team_id, operation, target, key, result_id, created_at)
      values (${teamId}, ${operation}, ${workflowId}, ${idempotencyKey}, ${jobId}, ${tx.now})
      on conflict (team_id, operation, target, key)
      do update set result_id = excluded.result_id, created_at = excluded.created_at, sent = null`,
    forget(tx, teamId),
  ]);
}

export async function get(view: View, { teamId, id }: InTeam): Promise<Job | undefined> {
  const row = await view.db.get<JobRow>`select ${JOB} from job where team_id = ${teamId} and id = ${id}`;
  return row && toJob(row);
}

/** A job and its workflow, both locked until the commit. */
export interface LockedJob {
  job: JobRow;
  workflow: WorkflowRow;
}

/** Locks a job and its workflow, to end the job or to change its records. */
export async function lockJob(tx: View, { teamId, id }: InTeam): Promise<LockedJob | undefined> {
  const { workflow: lockedWorkflow, job: lockedJob } = tx.locked ?? {};
  if (lockedWorkflow !== undefined && lockedJob?.id === id)
    return { job: lockedJob, workflow: lockedWorkflow };
  // Both statements are sent in one round trip, and lock the workflow first. This is safe, because a job never moves to
  // another workflow.
  const [workflow, job] = await Promise.all([
    tx.db.get<WorkflowRow>`
      select ${WORKFLOW} from workflow
      where team_id = ${teamId} and id = (select workflow_id from job where team_id = ${teamId} and id = ${id})
      for update`,
    tx.db.get<JobRow>`select ${JOB} from job where team_id = ${teamId} and id = ${id} for update`,
  ]);
  return workflow === undefined || job === undefined ? undefined : { job, workflow };
}

/**
 * Locks the job of an attempt, and its workflow, before the attempt ends or writes records. Throws FencedError if the
 * attempt is no longer running.
 */
export async function lockHeld(tx: View, held: AttemptLease): Promise<LockedJob> {
  const locked = await lockRunning(tx, held);
  if (locked === undefined) throw fenced(held);
  return locked;
}

/** Like `lockHeld`, but returns undefined if the attempt is no longer running. */
export async function lockRunning(tx: View, held: AttemptLease): Promise<LockedJob | undefined> {
  const locked = await lockJob(tx, { teamId: held.teamId, id: held.jobId });
  const { job } = locked ?? {};
  return job?.state === 'running' && job.attempt === held.attempt ? locked : undefined;
}

/** Like `lockHeld`, but locks only the job's row, for changes that affect nothing else. */
export async function heldJob(tx: Tx, held: AttemptLease): Promise<JobRow> {
  const row = await tx.db.get<JobRow>`
    select ${JOB} from job where team_id = ${held.teamId} and id = ${held.jobId} and attempt = ${held.attempt}
      and state = 'running' for update`;
  if (row === undefined) throw fenced(held);
  return row;
}

export function fenced({ jobId, attempt }: AttemptLease): FencedError {
  return new FencedError(`Attempt ${attempt} of job ${jobId} is no longer running`);
}

/**
 * Moves the job that waits behind an ended job into its slot. The job is dated now or later (see `claim-bounds.ts`).
 */
export async function moveUp(tx: Tx, ended: JobRow): Promise<void> {
  touchJobs(tx, ended.teamId, tx.now);
  await tx.db.run`
    update job /* use job_slot */ set slot = 0, run_at = greatest(run_at, ${tx.now})
    where team_id = ${ended.teamId} and workflow_id = ${ended.workflowId} and slot = 1 and ${UNFINISHED}`;
}

/** Appends an event about a job in its current state. `more` is added to the event's data. */
export function appendJobEvent(
  tx: Tx,
  job: JobRow,
  type: EventType,
  more: Record<string, unknown> = {},
): void {
  const facts = jobData({
    workflowId: job.workflowId,
    jobId: job.id,
    state: job.state,
    queuedAt: job.createdAt,
    startedAt: job.startedAt,
    finishedAt: job.finishedAt,
  });
  appendEvent(tx, {
    teamId: job.teamId,
    type,
    workflowId: job.workflowId,
    jobId: job.id,
    finishedAt: job.finishedAt,
    data: { ...facts, ...more },
    trace: traceOfAttempt(job),
  });
}

export interface DueSchedule {
  teamId: string;
  workflowId: string;
  schedule: Schedule;
  dueAt: number;
}

/**
 * Lists due schedules, longest due first, except those of paused and archived workflows.
 *
 * The query repeats the condition of the index `workflow_next_run`, so that it can use this index.
 */
export async function due(view: View, { limit }: { limit: number }): Promise<DueSchedule[]> {
  const rows = await view.db.all<ScheduleRow>`
    ${SCHEDULES} and next_run_at <= ${view.now} order by next_run_at limit ${limit}`;
  return rows.map(toSchedule);
}

/**
 * Lists schedules that are not due yet, after the workflow `after`, ordered by team and workflow. Schedules of paused
 * and archived workflows are left out.
 */
export async function ahead(
  view: View,
  { after, limit }: { after: WorkflowRef | null; limit: number },
): Promise<DueSchedule[]> {
  const rows = await view.db.all<ScheduleRow>`
    ${SCHEDULES} and next_run_at > ${view.now} and (team_id,
      id) > (${after?.teamId ?? ''}, ${after?.workflowId ?? ''}) order by team_id, id limit ${limit}`;
  return rows.map(toSchedule);
}

/** When the first schedule is due, except those of paused and archived workflows; null without schedules. */
export async function nextDueAt(view: View): Promise<number | null> {
  const row = await view.db.get<{ at: number }>`
    select next_run_at as at from workflow
    where next_run_at is not null and paused_at is null and archived_at is null order by next_run_at limit 1`;
  return row?.at ?? null;
}

type ScheduleRow = Omit<DueSchedule, 'schedule'> & { definition: string };

const SCHEDULES = new Part(`
  select team_id as "teamId", id as "workflowId", next_run_at as "dueAt", definition from workflow
  where next_run_at is not null and paused_at is null and archived_at is null`);

function toSchedule({ definition, ...row }: ScheduleRow): DueSchedule {
  return { ...row, schedule: (JSON.parse(definition) as Definition).schedule as Schedule };
}

/**
 * Moves a schedule from `dueAt` to `nextAt` by compare-and-set. With `run`, also queues a job of origin `schedule`. If
 * several nodes call this at the same time, one succeeds, and the others get `taken`. `coalesced` means that an
 * unfinished job occupies the slot.
 */
export async function fire(
  tx: Tx,
  input: {
    teamId: string;
    workflowId: string;
    dueAt: number;
    nextAt: number | null;
    run: boolean;
    trace?: string | null;
  },
): Promise<{ outcome: 'queued' | 'coalesced' | 'skipped' | 'taken'; job: Job | null }> {
  const { teamId, workflowId, dueAt, nextAt, run, trace = null } = input;
  const moved = await tx.db.run`
    update workflow set next_run_at = ${nextAt}
    where team_id = ${teamId} and id = ${workflowId} and next_run_at = ${dueAt} and paused_at is null
      and archived_at is null`;
  if (moved === 0) return { outcome: 'taken', job: null };
  if (!run) return { outcome: 'skipped', job: null };
  const queued = await enqueue(tx, { teamId, workflowId, origin: 'schedule', idempotencyKey: null, trace });
  if (queued.outcome === 'queued') return { outcome: 'queued', job: queued.job };
  if (queued.outcome === 'occupied') return { outcome: 'coalesced', job: queued.job };
  return { outcome: 'skipped', job: null };
}
