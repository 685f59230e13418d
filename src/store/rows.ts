/** The rows of jobs and workflows, and functions that convert them to the types of the model. */

import { type AfterAttempt, type FailureReason, type Job, NEW_JOB } from '../model/job.ts';
import { storedDefinition } from '../model/quality/guards.ts';
import type { Workflow } from '../model/workflow.ts';
import { newId } from '../std/id.ts';
import { Part } from './sql.ts';

/** Names an object of a team by its id. */
export interface InTeam {
  teamId: string;
  id: string;
}

/**
 * Groups rows by team, in the order in which transactions lock teams. A statement that names one team runs on one node
 * of a distributed database.
 */
export function byTeam<Row>(rows: readonly Row[], teamOf: (row: Row) => string): [teamId: string, Row[]][] {
  return [...Map.groupBy(rows, teamOf)].sort(([one], [other]) => (one < other ? -1 : 1));
}

/**
 * Maximum length, in characters, of an error in an event, because the event's body must stay under 20 kB. The job's row
 * contains the whole error.
 */
export const MAX_EVENT_ERROR = 2_000;

/** How an attempt ends without publishing, or how a waiting job ends. Counters that are not given stay unchanged. */
export interface AttemptEnd {
  follows: AfterAttempt;
  reason: FailureReason | null;
  error: string | null;
  failures?: number;
  crashes?: number;
}

/**
 * Returns a list of columns for `select` and `returning`, with aliases in camel case. `from` is the table's name
 * followed by a dot, or empty.
 */
function columns(names: string, from = ''): Part {
  return new Part(names.replace(/\w+/g, (name) => `${from}${name} as "${camelCase(name)}"`));
}

/** `run_at` becomes `runAt`. */
export function camelCase(column: string): string {
  return column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `runAt` becomes `run_at`. */
function snakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * A row of the table `job`. The fields declared here are missing in the model or, as JSON text, have another type
 * there.
 */
export interface JobRow extends Omit<Job, 'progress' | 'records' | 'findings'> {
  /** 1 while the workflow is paused or archived. No node claims the job then. */
  parked: number;
  nodeId: string | null;
  leaseUntil: number | null;
  processPid: number | null;
  processStartedAt: string | null;
  progress: string | null;
  records: string | null;
  findings: string | null;
}

/** The other fields of a job that no node has claimed. */
const NOT_HELD = {
  parked: 0,
  nodeId: null,
  leaseUntil: null,
  processPid: null,
  processStartedAt: null,
} as const satisfies Partial<JobRow>;
/** The remaining fields, which `newJob` gets or computes. */
const GIVEN = ['teamId', 'id', 'workflowId', 'slot', 'origin', 'priority', 'runAt', 'createdAt'];
const JOB_COLUMNS = [...GIVEN, ...Object.keys({ ...NEW_JOB, ...NOT_HELD })].map(snakeCase).join();
export const JOB = columns(JOB_COLUMNS);
/** The same columns, for statements that also read other tables. */
export const OF_JOB = columns(JOB_COLUMNS, 'job.');

export function toJob({
  parked: _parked,
  nodeId: _node,
  leaseUntil: _lease,
  processPid: _pid,
  processStartedAt: _started,
  ...row
}: JobRow): Job {
  return {
    ...row,
    progress: row.progress === null ? null : JSON.parse(row.progress),
    records: row.records === null ? null : JSON.parse(row.records),
    findings: row.findings === null ? null : JSON.parse(row.findings),
  };
}

type NewJob = Pick<Job, 'teamId' | 'workflowId' | 'origin' | 'slot' | 'priority'> &
  Partial<Pick<Job, 'trace'>>;

/** Returns the row of a job that is queued now, without inserting the row. */
export function newJob(
  { now }: { now: number },
  { teamId, workflowId, origin, slot, priority, trace = null }: NewJob,
): JobRow {
  return {
    ...NEW_JOB,
    ...NOT_HELD,
    teamId,
    workflowId,
    origin,
    slot,
    priority,
    trace,
    id: newId('job', now),
    runAt: now,
    createdAt: now,
  };
}

/**
 * A row of the table `workflow`. Most fields declared here are missing in the model; `definition` and `state` are JSON
 * texts.
 */
export interface WorkflowRow extends Omit<Workflow, 'definition'> {
  definition: string;
  /** The `fresh` of the definition in milliseconds; null if it has none. */
  freshMs: number | null;
  /** The incremental state stored by the last published run. The text may be long. */
  state: string | null;
  prunedVersion: number;
  /** How long versions are kept (null: the default). */
  keepVersions: number | null;
  keepMs: number | null;
  nextSeq: number;
  stagedAdded: number;
  stagedChanged: number;
  stagedRemoved: number;
  stagedLargest: number;
  /** By how many bytes the running job makes the records grow; negative if they shrink. */
  stagedBytes: number;
  /** Bytes of the rows that the running job has closed. */
  stagedReplaced: number;
  /** How many runs have changed the quarantine. */
  quarantineRun: number;
  /** Entries of the quarantine that the running job has added and ended. */
  stagedQuarantined: number;
  stagedReleased: number;
}

const LISTED_COLUMNS = `
  team_id, id, definition, definition_hash, paused_at, archived_at, current_version, oldest_version, next_run_at,
  fresh_due_at, stale_since, created_at, updated_at`;
/** The columns that `toWorkflow` needs. */
export const LISTED = columns(LISTED_COLUMNS);
export const WORKFLOW =
  columns(`${LISTED_COLUMNS}, fresh_ms, state, pruned_version, keep_versions, keep_ms, next_seq, staged_added, staged_changed,
  staged_removed, staged_largest, staged_bytes, staged_replaced, quarantine_run, staged_quarantined, staged_released`);
export type ListedRow = Omit<Workflow, 'definition'> & { definition: string };

/** The state as JSON text; null if there is none, also because a run left `null`. */
export function stateOf({ state }: Pick<WorkflowRow, 'state'>): string | null {
  return state === 'null' ? null : state;
}

export function toWorkflow(row: ListedRow): Workflow {
  return {
    teamId: row.teamId,
    id: row.id,
    definition: storedDefinition(row.definition),
    definitionHash: row.definitionHash,
    pausedAt: row.pausedAt,
    archivedAt: row.archivedAt,
    currentVersion: row.currentVersion,
    oldestVersion: row.oldestVersion,
    nextRunAt: row.nextRunAt,
    freshDueAt: row.freshDueAt,
    staleSince: row.staleSince,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
  };
}

/**
 * The condition of the index `job_slot`, which only statements with exactly this text can use. SQLite's index needs the
 * first part of the condition, and PostgreSQL's index needs the rest. PostgreSQL's planner assumes that an index of
 * unfinished jobs is small. But during a long transaction, this index has an entry for every job queued since, so
 * claims must not use it: they would scan all entries. SQLite's planner would read all jobs of a team instead of using
 * the index, so statements must name it, as in `from job /* use job_slot *\/`.
 */
export const UNFINISHED = new Part(
  `finished_at is null and state in ('queued', 'running', 'retrying') and attempt >= 0`,
);
