/** Operations on jobs and schedules: part of the Store; `store.ts` says what all operations have in common. */
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

/** The few fields of a job that overviews show. */
export type JobGlance = Pick<Job, 'id' | 'state' | 'createdAt' | 'startedAt' | 'finishedAt'>;

/** The result of queueing a job. On `occupied`, `job` is the one that holds the workflow's slot. */
export type Enqueued =
  | { outcome: 'queued'; job: Job }
  | { outcome: 'replayed'; job: Job }
  | { outcome: 'occupied'; job: Job }
  /** The source is `push`: there is nothing to run, callers send the records. */
  | { outcome: 'receives_push' }
  | { outcome: 'paused' }
  | { outcome: 'not_found' };

/** A job that this node has just claimed, with its workflow. */
export interface ClaimedJob {
  job: Job;
  workflow: Workflow;
  /** The incremental state stored by the last published run (`ctx.state`); null before the first. */
  state: unknown;
}

export interface JobOperations {
  /**
   * Queues a job unless the workflow has an unfinished one (with `overlap: buffer`: two). Of simultaneous calls exactly
   * one gets the slot. Repeating an idempotency key within 24 h returns `replayed` with the job of the first `queued`;
   * `occupied` is not remembered. Event: `workflow_queued`.
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
   * Claims up to `limit` due jobs for a node: they become running, with attempt + 1 and a lease. The team with the
   * fewest running jobs goes first, none gets more than `perTeam`; within a team the highest priority, then the one due
   * longest. Event, on a job's first attempt: `workflow_started`.
   */
  claim(input: {
    nodeId: string;
    limit: number;
    leaseMs: number;
    /** How many running jobs one team may have on all nodes together, unless it has a quota of its own. */
    perTeam: number;
    /** Workflows that this node must not run, because its files differ from what was applied. */
    except?: readonly { teamId: string; workflowId: string }[];
    /**
     * The teams that run jobs on this node already. While there is more than one team, the last of the `limit` places
     * goes to none of these, nor to one that this claim has given another place: it is left for the others. Without it
     * nothing is left.
     */
    busy?: readonly string[];
  }): Promise<ClaimedJob[]>;
  /** Stores the child process of an attempt; null once it has ended. */
  setProcess(input: { held: Held; process: ProcessMark | null }): Promise<void>;
  /**
   * Heartbeat: renews the leases of a node's attempts. Returns those that it no longer holds (`lost`), those that
   * are to be canceled, and those whose rows were locked, so that they are neither renewed nor lost (`late`).
   */
  beat(input: {
    nodeId: string;
    held: readonly Held[];
    leaseMs: number;
  }): Promise<{ lost: Held[]; canceled: Held[]; late?: Held[] }>;
  /**
   * Ends a failed attempt: the job goes on as `then` says (see `model/job.ts`), or is canceled if that was requested.
   * When the job ends, a buffered job moves up. Event, when the job ends: `workflow_failed` or `workflow_canceled`.
   */
  fail(input: {
    held: Held;
    reason: FailureReason;
    error: string;
    failures: number;
    then: AfterFailure;
  }): Promise<void>;
  /**
   * Starts a job of origin `push`: running at once, held by the process that has the records, never retried. An earlier
   * push whose lease has expired is failed as `lost`; any other unfinished job makes this one `occupied`. Repeating an
   * idempotency key within 24 h returns `replayed` with the job that it published, and what `noteSent` noted of it; a
   * failed job is not replayed.
   * Events: `workflow_queued`, `workflow_started`.
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
    | { outcome: 'replayed'; job: Job; sent: string | null }
    | { outcome: 'occupied'; job: Job }
    | { outcome: 'not_push' | 'paused' | 'not_found' }
  >;
  /**
   * Notes a hash of what a push with an idempotency key has sent, before it is published, so that a push with the same
   * key can be compared with it. Throws FencedError.
   */
  noteSent(input: { held: Held; sent: string }): Promise<void>;
  /**
   * Cancels a job. A waiting one is `canceled` at once; for a running one the request is stored (`canceling`) and its
   * holder notified; an `ended` one stays as it is. `by` is stored as the job's `error`: a sentence without personal
   * data. Event, when the job ends: `workflow_canceled`.
   */
  cancel(input: {
    teamId: string;
    id: string;
    by: string;
  }): Promise<{ outcome: 'canceled' | 'canceling' | 'ended'; job: Job } | undefined>;
  /** Ends a running attempt as canceled, once its holder has stopped the run. Event: `workflow_canceled`. */
  endCanceled(input: { held: Held }): Promise<void>;
  /** Makes a waiting job due at once; `not_waiting` if it is running or has ended. */
  runNow(input: {
    teamId: string;
    id: string;
  }): Promise<{ outcome: 'due' | 'not_waiting'; job: Job } | undefined>;
  /**
   * Stores the progress of an attempt and appends to its log, of which the first and the last MiB are kept. With
   * `restart`, these lines replace everything after the first MiB.
   */
  report(input: {
    held: Held;
    progress?: Progress;
    lines?: readonly LogLine[];
    restart?: boolean;
  }): Promise<void>;
  /** Lines of an attempt's log after line `afterSeq`, in order; empty if there is none yet. */
  log(input: {
    teamId: string;
    jobId: string;
    attempt: number;
    afterSeq: number;
    limit: number;
  }): Promise<LogLine[]>;
  /** Returns attempts to the queue at a graceful stop: due at once, no retry used up. Ignores those no longer held. */
  release(input: { held: readonly Held[] }): Promise<void>;
  /** Running jobs whose holder is gone: all those of `nodeId`, and all whose lease has expired. */
  abandoned(input: { nodeId: string | null }): Promise<Abandoned[]>;
  /**
   * Ends an attempt that `abandoned` returned for this `nodeId`: the job is retried or, as `afterCrash` decides, failed
   * with reason `lost`. Undefined if that attempt is no longer running or its lease has been renewed since.
   */
  reclaim(input: { held: Held; nodeId: string | null; error: string }): Promise<Job | undefined>;
  get(input: { teamId: string; id: string }): Promise<Job | undefined>;
  /** A team's jobs, newest first, optionally of one workflow, in some states, of one origin. */
  list(input: {
    teamId: string;
    workflowId?: string;
    states?: readonly JobState[];
    origin?: JobOrigin;
    /** When they were created, both inclusive; epoch milliseconds. */
    since?: number;
    until?: number;
    /** The id of the previous page's last job. */
    before?: string;
    limit: number;
  }): Promise<Job[]>;
  /** The newest `each` jobs of each workflow, newest first; workflows without jobs have no entry. */
  recent(input: {
    teamId: string;
    workflowIds: readonly string[];
    each: number;
  }): Promise<Map<string, JobGlance[]>>;
  /**
   * How many jobs are in each state: all unfinished ones, and the ended ones among the newest `among` jobs. `complete`
   * if there are no others.
   */
  counts(input: {
    teamId: string;
    workflowId?: string;
    among: number;
  }): Promise<{ states: Partial<Record<JobState, number>>; complete: boolean }>;
  /**
   * Deletes ended jobs with their logs if they are older than `keepMs` or not among the newest `keepJobs` of their
   * workflow. The newest ended one of each stays. At most `limit` jobs per call; call until `done`.
   */
  prune(input: { keepJobs: number; keepMs: number; limit: number }): Promise<{ done: boolean }>;
}

/** Scheduled runs. */
export interface ScheduleOperations {
  /** Due schedules, longest due first; without those of paused and archived workflows. */
  due(input: { limit: number }): Promise<DueSchedule[]>;
  /** Schedules that are not due yet, by team and workflow, behind one of them; without those of paused workflows. */
  ahead(input: {
    after: { teamId: string; workflowId: string } | null;
    limit: number;
  }): Promise<DueSchedule[]>;
  /**
   * Compare-and-set of a schedule from `dueAt` to `nextAt`; with `run` it also queues a job of origin `schedule`. Of
   * several nodes one succeeds, the others get `taken`. `coalesced`: an unfinished job holds the slot.
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

/** A running job whose holder is gone, and the process that may have been left behind. */
export interface Abandoned {
  held: Held;
  workflowId: string;
  /** The node that claimed it or, for a push, received it. */
  nodeId: string | null;
  origin: JobOrigin;
  process: ProcessMark | null;
}
