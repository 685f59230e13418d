/** What can happen to jobs and schedules: a part of the Store, see `store.ts` for what holds of all operations. */
import type {
  AfterFailure,
  FailureReason,
  Held,
  Job,
  JobOrigin,
  JobState,
  LogLine,
  ProcessMark,
  Progress,
} from '../model/job.ts';
import type { Schedule, Workflow } from '../model/workflow.ts';

/** What is told of a job where there are many. */
export type JobGlance = Pick<Job, 'id' | 'state' | 'createdAt' | 'startedAt' | 'finishedAt'>;

/** What became of a request to queue a job. `job` on `occupied` is the one in the way. */
export type Enqueued =
  | { outcome: 'queued'; job: Job }
  | { outcome: 'replayed'; job: Job }
  | { outcome: 'occupied'; job: Job }
  /** Its source is `push`: nothing here could run it. */
  | { outcome: 'receives_push' }
  | { outcome: 'paused' }
  | { outcome: 'not_found' };

/** A job that this node has just claimed, with the workflow as it stands. */
export interface ClaimedJob {
  job: Job;
  workflow: Workflow;
  /** What the last published run left for the next one (`ctx.state`); null before. */
  state: unknown;
}

export interface JobOperations {
  /**
   * Queues a job unless the workflow has an unfinished one (with `overlap: buffer`: two). Of any number of
   * simultaneous calls exactly one gets the slot. The same idempotency key within 24 h answers `replayed` with
   * the job of the first `queued`; an `occupied` is never remembered. Event: `workflow_queued`.
   */
  enqueue(input: {
    teamId: string;
    workflowId: string;
    origin: JobOrigin;
    idempotencyKey: string | null;
    /** The trace that the job and its events belong to, as `traceparent`. */
    trace?: string | null;
  }): Promise<Enqueued>;
  /**
   * Takes up to `limit` due jobs for a node: running, attempt + 1, a lease. The team with the fewest running jobs
   * goes first, and none gets beyond `perTeam`; within a team the highest priority, then what is due longest.
   * Event, at a job's first attempt: `workflow_started`.
   */
  claim(input: {
    nodeId: string;
    limit: number;
    leaseMs: number;
    /** Running jobs that one team may have on all nodes together. */
    perTeam: number;
    /** Workflows whose jobs this node must leave to others: what it would run is not what was applied. */
    except?: readonly { teamId: string; workflowId: string }[];
  }): Promise<ClaimedJob[]>;
  /** Records the child process of an attempt, or that it has ended. */
  setProcess(input: { held: Held; process: ProcessMark | null }): Promise<void>;
  /**
   * Renews the leases of a node's attempts; answers those that it no longer holds, and those to be canceled. `late` are
   * those that could not be renewed this time, because their rows are locked: neither lost nor safe.
   */
  beat(input: {
    nodeId: string;
    held: readonly Held[];
    leaseMs: number;
  }): Promise<{ lost: Held[]; canceled: Held[]; late?: Held[] }>;
  /**
   * Ends an attempt that failed, as `then` says (see `model/job.ts`), or as canceled if that was asked for. Event,
   * when the job ends: `workflow_failed` or `workflow_canceled`. A job that waits behind moves up.
   */
  fail(input: {
    held: Held;
    reason: FailureReason;
    error: string;
    failures: number;
    then: AfterFailure;
  }): Promise<void>;
  /**
   * Starts a job of origin `push`: running at once, held by the process that has the records, never tried again.
   * `occupied` names the job in the way; a push whose lease is over is not in the way: it is ended as `lost`. The
   * same idempotency key within 24 h answers `replayed` with the job that it published; a job that failed is
   * never replayed. Events: `workflow_queued`, `workflow_started`.
   */
  begin(input: {
    teamId: string;
    workflowId: string;
    nodeId: string;
    leaseMs: number;
    idempotencyKey: string | null;
    trace?: string | null;
  }): Promise<
    | { outcome: 'begun'; claimed: ClaimedJob }
    | { outcome: 'replayed'; job: Job }
    | { outcome: 'occupied'; job: Job }
    | { outcome: 'not_push' | 'paused' | 'not_found' }
  >;
  /**
   * Cancels a job. One that waits is `canceled` at once; of one that runs the wish is noted (`canceling`) and its
   * holder told; an `ended` one stays what it is. `by` is kept in the job's `error`: a sentence without personal
   * data. Event, when the job ends: `workflow_canceled`.
   */
  cancel(input: {
    teamId: string;
    id: string;
    by: string;
  }): Promise<{ outcome: 'canceled' | 'canceling' | 'ended'; job: Job } | undefined>;
  /** Ends a running attempt as canceled: its holder has ended the run. Event: `workflow_canceled`. */
  endCanceled(input: { held: Held }): Promise<void>;
  /** Brings a waiting job forward: due at once. `not_waiting` when it runs or has ended. */
  runNow(input: {
    teamId: string;
    id: string;
  }): Promise<{ outcome: 'due' | 'not_waiting'; job: Job } | undefined>;
  /**
   * Notes how far an attempt is, and lines of its log. Of a log the first and the last MiB are kept: what lies
   * between is deleted as more comes. `restart` replaces what stands behind the first MiB by these lines.
   */
  report(input: {
    held: Held;
    progress?: Progress;
    lines?: readonly LogLine[];
    restart?: boolean;
  }): Promise<void>;
  /** Lines of an attempt's log after a line, in order; an empty answer means that there is no later one yet. */
  log(input: {
    teamId: string;
    jobId: string;
    attempt: number;
    afterSeq: number;
    limit: number;
  }): Promise<LogLine[]>;
  /** Gives attempts back at a graceful stop: due at once, no budget used. Those no longer held are left alone. */
  release(input: { held: readonly Held[] }): Promise<void>;
  /** Running jobs whose holder is gone: every one that `nodeId` names, or whose lease is over. */
  abandoned(input: { nodeId: string | null }): Promise<Abandoned[]>;
  /**
   * Ends an attempt that `abandoned` has named for this `nodeId`: retrying or, by `afterCrash`, failed with reason
   * `lost`. Answers nothing when that attempt does not run any more, or its holder has renewed it since.
   */
  reclaim(input: { held: Held; nodeId: string | null; error: string }): Promise<Job | undefined>;
  get(input: { teamId: string; id: string }): Promise<Job | undefined>;
  /** A team's jobs, newest first: those of one workflow, in some states, of one origin, made before a job. */
  list(input: {
    teamId: string;
    workflowId?: string;
    states?: readonly JobState[];
    origin?: JobOrigin;
    /** Made at this time or later, and at this one or earlier; epoch milliseconds. */
    since?: number;
    until?: number;
    /** The id of the last job of the page before. */
    before?: string;
    limit: number;
  }): Promise<Job[]>;
  /** The newest jobs of each of some workflows, newest first; nothing for those without any. */
  recent(input: {
    teamId: string;
    workflowIds: readonly string[];
    each: number;
  }): Promise<Map<string, JobGlance[]>>;
  /**
   * How many jobs are in each state: of those that have not ended all, of those that have, the ones among the newest
   * `among`. `complete` when these are all that there are.
   */
  counts(input: {
    teamId: string;
    workflowId?: string;
    among: number;
  }): Promise<{ states: Partial<Record<JobState, number>>; complete: boolean }>;
  /**
   * Deletes ended jobs, with their logs, that are older than `keepMs` or not among the newest `keepJobs` of their
   * workflow; the newest ended one of each stays. At most `limit` jobs a call, to be called until done.
   */
  prune(input: { keepJobs: number; keepMs: number; limit: number }): Promise<{ done: boolean }>;
}

/** Workflows that run by themselves. */
export interface ScheduleOperations {
  /** Those that are due, longest first. Paused and archived ones are not. */
  due(input: { limit: number }): Promise<DueSchedule[]>;
  /**
   * Moves a schedule on from `dueAt` to `nextAt` and, with `run`, queues a job of origin `schedule`. Of any number
   * of nodes that try, one succeeds: the others are answered `taken`. `coalesced` when a job was in the way.
   */
  fire(input: {
    teamId: string;
    workflowId: string;
    dueAt: number;
    nextAt: number | null;
    run: boolean;
    trace?: string | null;
  }): Promise<{ outcome: 'queued' | 'coalesced' | 'skipped' | 'taken'; job: Job | null }>;
}

export interface DueSchedule {
  teamId: string;
  workflowId: string;
  schedule: Schedule;
  dueAt: number;
}

/** A running job without a living holder, and the process that it may have left behind. */
export interface Abandoned {
  held: Held;
  workflowId: string;
  /** Who has claimed it, or received it. */
  nodeId: string | null;
  origin: JobOrigin;
  process: ProcessMark | null;
}
