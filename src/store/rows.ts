/** The rows of jobs and workflows, and how they become the model's. */
import type { AfterAttempt, FailureReason, Job, JobOrigin } from '../model/job.ts';
import type { Workflow } from '../model/workflow.ts';
import { newId } from '../std/id.ts';
import { Part } from './sql.ts';

/** Names something of a team by its id. */
export interface InTeam {
  teamId: string;
  id: string;
}

/** Maximum characters of an error in an event, whose body must stay under 20 kB; the job has all of it. */
export const MAX_EVENT_ERROR = 2_000;

/** How an attempt or a waiting job ends, other than by publishing. Counters that are not given stay unchanged. */
export interface AttemptEnd {
  follows: AfterAttempt;
  reason: FailureReason | null;
  error: string | null;
  failures?: number;
  crashes?: number;
}

export interface JobRow {
  team_id: string;
  id: string;
  workflow_id: string;
  slot: number;
  state: Job['state'];
  origin: JobOrigin;
  attempt: number;
  failures: number;
  crashes: number;
  priority: number;
  /** 1 while the workflow is paused or archived: then it is not claimed. */
  parked: number;
  run_at: number;
  node_id: string | null;
  lease_until: number | null;
  cancel_requested_at: number | null;
  process_pid: number | null;
  process_started_at: string | null;
  reason: Job['reason'];
  error: string | null;
  progress: string | null;
  version: number | null;
  records: string | null;
  created_at: number;
  started_at: number | null;
  finished_at: number | null;
  trace: string | null;
}

export function toJob(row: JobRow): Job {
  return {
    teamId: row.team_id,
    id: row.id,
    workflowId: row.workflow_id,
    slot: row.slot,
    state: row.state,
    origin: row.origin,
    attempt: row.attempt,
    failures: row.failures,
    crashes: row.crashes,
    priority: row.priority,
    runAt: row.run_at,
    cancelRequestedAt: row.cancel_requested_at,
    reason: row.reason,
    error: row.error,
    progress: row.progress === null ? null : JSON.parse(row.progress),
    version: row.version,
    records: row.records === null ? null : JSON.parse(row.records),
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    trace: row.trace,
  };
}

/** The row of a job queued now; does not insert it. */
export function newJob(
  { now }: { now: number },
  input: {
    teamId: string;
    workflowId: string;
    origin: JobOrigin;
    slot: number;
    priority: number;
    trace?: string | null;
  },
): JobRow {
  return {
    team_id: input.teamId,
    id: newId('job', now),
    workflow_id: input.workflowId,
    slot: input.slot,
    state: 'queued',
    origin: input.origin,
    attempt: 0,
    failures: 0,
    crashes: 0,
    priority: input.priority,
    parked: 0,
    run_at: now,
    node_id: null,
    lease_until: null,
    cancel_requested_at: null,
    process_pid: null,
    process_started_at: null,
    reason: null,
    error: null,
    progress: null,
    version: null,
    records: null,
    created_at: now,
    started_at: null,
    finished_at: null,
    trace: input.trace ?? null,
  };
}

export interface WorkflowRow {
  team_id: string;
  id: string;
  definition: string;
  definition_hash: string;
  state: string | null;
  paused_at: number | null;
  archived_at: number | null;
  current_version: number;
  oldest_version: number;
  pruned_version: number;
  erasures: number;
  next_run_at: number | null;
  next_seq: number;
  staged_added: number;
  staged_changed: number;
  staged_removed: number;
  staged_largest: number;
  /** By how many bytes the run's writes grow the records; negative if they shrink. */
  staged_bytes: number;
  created_at: number;
  updated_at: number;
}

/** The columns that `toWorkflow` needs; without `state`, which may be long. */
const NAMES = [
  'team_id',
  'id',
  'definition',
  'definition_hash',
  'paused_at',
  'archived_at',
  'current_version',
  'oldest_version',
  'next_run_at',
  'created_at',
  'updated_at',
] as const;
export const LISTED = new Part(NAMES.join(', '));
export type ListedRow = Pick<WorkflowRow, (typeof NAMES)[number]>;

export function toWorkflow(row: ListedRow): Workflow {
  return {
    teamId: row.team_id,
    id: row.id,
    definition: JSON.parse(row.definition),
    definitionHash: row.definition_hash,
    pausedAt: row.paused_at,
    archivedAt: row.archived_at,
    currentVersion: row.current_version,
    oldestVersion: row.oldest_version,
    nextRunAt: row.next_run_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/**
 * The condition of the index `job_slot`: only statements with this text use it. SQLite's index needs the first part,
 * PostgreSQL's the rest: its planner assumes that an index of unfinished jobs is small, but during a long transaction the
 * index has entries of all jobs since, and claims would scan it from end to end. SQLite's planner would rather read all
 * jobs of a team: name the index, as in `from job /* use job_slot *\/`.
 */
export const UNFINISHED = new Part(
  `finished_at is null and state in ('queued', 'running', 'retrying') and attempt >= 0`,
);
