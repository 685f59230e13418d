/**
 * THE store: everything that can happen to the tables, one group of operations per noun.
 *
 * Each operation is one transaction. Operations that change something take the time from the store
 * (`Store.now`), write the events and deliveries that they cause in the same transaction, and answer only after
 * the commit. `src/store/conformance/` says what every driver must do; `src/store/open.ts` opens one.
 *
 * Any operation may reject with a `Problem` (`overloaded`, `database_unavailable`, `stopping`). An operation
 * that takes a `Held` rejects with `FencedError`, and changes nothing, when that attempt no longer runs.
 */
import type {
  Attempt,
  DeliveryClass,
  DeliveryOrigin,
  DeliveryState,
  DueDelivery,
  NextStep,
} from '../model/delivery.ts';
import type { EventType } from '../model/event.ts';
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
  RecordCounts,
} from '../model/job.ts';
import type { ComparedRecord, StagedWrite } from '../model/staging.ts';
import type { ApiKey, Scope, Team } from '../model/team.ts';
import type { Webhook, WebhookSettings } from '../model/webhook.ts';
import type { Definition, Mode, Schedule, Workflow } from '../model/workflow.ts';

export interface Store {
  readonly instance: InstanceOperations;
  readonly teams: TeamOperations;
  readonly keys: KeyOperations;
  readonly workflows: WorkflowOperations;
  readonly jobs: JobOperations;
  readonly schedules: ScheduleOperations;
  readonly records: RecordOperations;
  readonly events: EventOperations;
  readonly webhooks: WebhookOperations;
  readonly deliveries: DeliveryOperations;
  readonly erasure: ErasureOperations;

  /** The present in epoch milliseconds: the database's clock, or a test's. */
  now(): number;
  /**
   * Calls back after every commit that may concern others: at once for this process's own, within some 250 ms
   * for another process's (which is then reported as touching everything). A hint only: whoever listens also
   * polls. Returns a function that ends the watching.
   */
  watch(listener: (touched: Touched) => void): () => void;
  /** Resolves when a trivial read works, else rejects: what `/readyz` asks. */
  check(): Promise<void>;
  /** Waits for the writes under way and closes everything. Calling it twice is harmless. */
  close(): Promise<void>;
}

/** What a thread of its own may look up, on a connection of its own that cannot write. */
export interface StoreReader {
  readonly records: Pick<RecordOperations, 'compare' | 'page' | 'version'>;
  /** To be called once. */
  close(): void;
}

/** What a commit may have changed, for those who watch. */
export interface Touched {
  keys: boolean;
  jobs: boolean;
  /** Somebody wants a running job ended. */
  cancels: boolean;
  deliveries: boolean;
  /** The webhooks that something has become due for, if those are few: null means that any may be. */
  lanes: readonly LaneName[] | null;
}

export interface LaneName {
  teamId: string;
  webhookId: string;
}

export interface InstanceOperations {
  /** Stores a value under a name unless one is there; answers what is stored now. */
  claim(input: { name: string; value: string }): Promise<string>;
  get(input: { name: string }): Promise<string | undefined>;
}

export interface TeamOperations {
  /** The team with this slug, made if it is missing. */
  ensure(input: { slug: string }): Promise<Team>;
  get(input: { teamId: string }): Promise<Team | undefined>;
  bySlug(input: { slug: string }): Promise<Team | undefined>;
  /** Every team, oldest first. */
  list(): Promise<Team[]>;
  /** Stores a team's signing key unless it has one; answers the one it has. */
  ensureSigningKey(input: SigningKey): Promise<SigningKey>;
  /** Every signing key of the team that receivers should accept, oldest first. */
  signingKeys(input: { teamId: string }): Promise<SigningKey[]>;
}

/** An ed25519 key of a team. `privateKey` is sealed; `publicKey` is the 32 raw bytes in base64. */
export interface SigningKey {
  teamId: string;
  id: string;
  publicKey: string;
  privateKey: string;
  createdAt: number;
}

export interface KeyOperations {
  /** Stores a key. When its hash is already there, nothing changes and the stored one is answered. */
  create(input: {
    teamId: string;
    name: string;
    hash: string;
    prefix: string;
    scopes: readonly Scope[];
    expiresAt: number | null;
  }): Promise<ApiKey>;
  /** The key with this SHA-256, revoked and expired ones included. */
  byHash(input: { hash: string }): Promise<ApiKey | undefined>;
  /** Keys of a team, or of all teams; oldest first, revoked ones included. */
  list(input: { teamId?: string }): Promise<ApiKey[]>;
  /** Revokes a key for good; answers it, or nothing if there is none. Revoking twice is harmless. */
  revoke(input: { id: string }): Promise<ApiKey | undefined>;
}

export interface WorkflowOperations {
  /**
   * Stores a definition. An archived workflow comes back with its data. `nextRunAt` counts when the schedule is not
   * the one that was there; one that has not changed keeps its time.
   */
  apply(input: {
    teamId: string;
    id: string;
    definition: Definition;
    hash: string;
    nextRunAt: number | null;
  }): Promise<'created' | 'changed' | 'unchanged' | 'restored'>;
  /** A workflow that is not archived. */
  get(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** A team's workflows that are not archived, by id. */
  list(input: { teamId: string }): Promise<Workflow[]>;
  /** Archives workflows: the five operations then answer 404, the data is kept. Answers how many it archived. */
  archive(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /** Pauses a workflow: it takes no new jobs and starts none; what runs goes on. Twice is harmless. */
  pause(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** Ends the pause. `nextRunAt` is when its schedule is due next: what fell into the pause is not made up for. */
  resume(input: { teamId: string; id: string; nextRunAt: number | null }): Promise<Workflow | undefined>;
}

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
  }): Promise<ClaimedJob[]>;
  /** Records the child process of an attempt, or that it has ended. */
  setProcess(input: { held: Held; process: ProcessMark | null }): Promise<void>;
  /** Renews the leases of a node's attempts; answers those that it no longer holds, and those to be canceled. */
  beat(input: {
    nodeId: string;
    held: readonly Held[];
    leaseMs: number;
  }): Promise<{ lost: Held[]; canceled: Held[] }>;
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
   * Ends an abandoned attempt: retrying or, by `afterCrash`, failed with reason `lost`. Answers nothing when that
   * attempt does not run any more.
   */
  reclaim(input: { held: Held; error: string }): Promise<Job | undefined>;
  get(input: { teamId: string; id: string }): Promise<Job | undefined>;
  /** A team's jobs, newest first: those of one workflow, in some states, of one origin, made before a job. */
  list(input: {
    teamId: string;
    workflowId?: string;
    states?: readonly JobState[];
    origin?: JobOrigin;
    /** The id of the last job of the page before. */
    before?: string;
    limit: number;
  }): Promise<Job[]>;
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
  process: ProcessMark | null;
}

/** What ingest must know of the ids of a batch before it can say what a run has to write. */
export interface Compared {
  /** The version under which the run writes: current + 1. */
  version: number;
  /** The rows of those ids that are current or that this run has written. */
  rows: ComparedRecord[];
}

export type Published =
  | { outcome: 'published'; version: number; records: RecordCounts }
  | { outcome: 'unchanged'; version: number; records: RecordCounts }
  /** A guard refused; nothing was changed. `error` says which and why. */
  | { outcome: 'guarded'; error: string }
  /** Somebody had canceled the job: it has ended as that, and nothing was published. */
  | { outcome: 'canceled' };

/** Records are rows that know since when and until when: DESIGN section 7. */
export interface RecordOperations {
  /**
   * Removes what earlier attempts wrote without publishing, up to `limit` rows and some 1 MiB a call; answers
   * whether nothing is left. To be called until it does, before the first `stage` of an attempt.
   */
  sweep(input: { held: Held; limit: number }): Promise<{ done: boolean }>;
  /**
   * Looks up the ids of a batch (at most 500), once the batch before it has been staged. `sizes` are the UTF-8
   * lengths of the records that came, in the order of `ids`: a stored body of another length differs anyway and
   * is answered as '', so that 500 bodies of 1 MiB are never in memory. Without them every body is answered.
   */
  compare(input: { held: Held; ids: readonly string[]; sizes?: readonly number[] }): Promise<Compared>;
  /**
   * Writes one batch (at most 500 rows, 1 MiB) under the next version, unseen by readers. Answers the `seq` of
   * each write, in order. Asked for once more it changes nothing, so that it may be tried again when the answer
   * was lost; rejects with an Error when a row is not what was compared. Takes several transactions where the
   * rows that it closes are long.
   */
  stage(input: { held: Held; writes: readonly StagedWrite[] }): Promise<{ seqs: number[] }>;
  /**
   * Which of the `rows` numbers after `afterSeq` are the `seq` of a record of the current state, in order: to find
   * what a run has not seen.
   */
  currentSeqs(input: {
    held: Held;
    afterSeq: number;
    rows: number;
  }): Promise<{ seqs: number[]; lastSeq: number; done: boolean }>;
  /**
   * Marks records of the current version (at most 500) as removed in the next. Those that this run has written
   * are left alone. Takes several transactions where they are long.
   */
  remove(input: { held: Held; seqs: readonly number[] }): Promise<void>;
  /**
   * Ends the attempt: moves the workflow's current version if anything changed, finishes the job, stores the
   * incremental state. Events: `workflow_data_change` if anything changed, then `workflow_finished`. Costs the
   * same however much the run has written.
   *
   * `fields` are the names that the run's records have, in order of first appearance; with `upsert` and `append`
   * they are added to those of the version before. `mode` is the run's: the definition's unless it is given.
   */
  publish(input: {
    held: Held;
    guards: Definition['guards'];
    state: unknown;
    fields: readonly string[];
    mode?: Mode;
  }): Promise<Published>;
  /** The version that readers see, or nothing for an unknown workflow. */
  version(input: { teamId: string; workflowId: string }): Promise<DataVersion | undefined>;
  /** One version from `oldest` to the current one; nothing when it cannot be read, or the workflow is unknown. */
  versionAt(input: { teamId: string; workflowId: string; version: number }): Promise<DataVersion | undefined>;
  /**
   * The versions that can be read, newest first, those below `before` if it is given; without version 0. Empty for
   * an unknown workflow.
   */
  versions(input: {
    teamId: string;
    workflowId: string;
    limit: number;
    before?: number;
  }): Promise<VersionSummary[]>;
  /**
   * One page of a version: the records whose `seq` is among the `rows` numbers after `afterSeq`, at most `limit` of
   * them, as JSON objects joined by commas, or by line ends, which stand in no record, with `lead` before the first.
   * May be empty and yet not the last: that one is `done`.
   */
  page(input: {
    teamId: string;
    workflowId: string;
    version: number;
    afterSeq: number;
    rows: number;
    limit?: number;
    separator?: ',' | '\n';
    lead?: string;
  }): Promise<RecordPage>;
  /**
   * Records of a version whose JSON text contains `q` (letters of ASCII without regard to case; what JSON escapes
   * must be escaped in `q`). Looks at `scan` numbers after `afterSeq`, or some 8 MiB, and answers at most `limit`;
   * `lastSeq` says how far it came, `count` how many it found.
   */
  search(input: {
    teamId: string;
    workflowId: string;
    version: number;
    q: string;
    afterSeq: number;
    scan: number;
    limit: number;
    separator?: ',' | '\n';
  }): Promise<RecordPage>;
  /**
   * What became of records between two versions, net, each id at most once: one that came and went in between is
   * not told, one that is as it was neither, and one that was removed and returned is told as changed. First
   * those added and changed, in the order in which they were written; then those removed. Looks at no more than
   * `limit` rows and some 8 MiB, so that an answer may be empty and yet not be the last: that has `next` null.
   * Both versions must be readable, which the caller must look at once more after the answer.
   */
  changes(input: {
    teamId: string;
    workflowId: string;
    since: number;
    until: number;
    after: ChangesCursor | null;
    limit: number;
  }): Promise<{ rows: ChangedRow[]; next: ChangesCursor | null }>;
  /** Workflows for which `prune` has something to do. */
  prunable(input: Retention & { limit: number }): Promise<{ teamId: string; workflowId: string }[]>;
  /**
   * Gives up versions that `Retention` does not keep: moves `oldest`, then deletes the rows that only they had, at
   * most `limit` rows and some 1 MiB a call. To be called until done.
   */
  prune(input: Retention & { teamId: string; workflowId: string; limit: number }): Promise<{ done: boolean }>;
}

/** Which versions are kept besides the current one. */
export interface Retention {
  /** The newest so many, the current one included. */
  keepVersions: number;
  /** None that has not been current for so long. */
  keepMs: number;
  /** All that were current less than so long ago, whatever the others say. */
  graceMs: number;
}

export interface VersionSummary {
  number: number;
  jobId: string;
  publishedAt: number;
  records: RecordCounts;
}

/** Where a reading of changes goes on. */
export interface ChangesCursor {
  part: 'written' | 'removed';
  version: number;
  seq: number;
}

export interface ChangedRow {
  id: string;
  /** The version that brought its last state, or that removed it. */
  version: number;
  /** JSON text at `since`; null when it was not there. */
  before: string | null;
  /** JSON text at `until`; null when it is no longer there. */
  after: string | null;
}

export interface DataVersion {
  /** 0 before the first published run. */
  number: number;
  oldest: number;
  /** How many records it holds. */
  total: number;
  /** The byte length of its longest record, or more. */
  largest: number;
  /** How often records were erased from the workflow: with `number` it names the content for good. */
  erasures: number;
  /** The names of the fields that its records have, or more; in order of first appearance. */
  fields: string[];
}

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  /** Where the next page goes on. */
  lastSeq: number;
  /** Whether nothing follows. */
  done: boolean;
}

/** An event as it is stored. */
export interface StoredEvent {
  teamId: string;
  id: string;
  sequence: number;
  type: EventType;
  workflowId: string | null;
  jobId: string | null;
  body: string;
  createdAt: number;
}

export interface EventOperations {
  /** A team's events after a sequence, in order. A cursor over it never skips a late commit. */
  list(input: { teamId: string; afterSequence: number; limit: number }): Promise<StoredEvent[]>;
  get(input: { teamId: string; id: string }): Promise<StoredEvent | undefined>;
  /** The sequence of the team's newest event; 0 before the first. */
  newest(input: { teamId: string }): Promise<number>;
}

export interface WebhookOperations {
  /**
   * Subscribes, unless the same team, workflow, URL and set of events is there already: that one is answered,
   * resumed if it was paused. Without a workflow (null) it hears of all of the team's. `secret` (sealed) is used
   * only for a new one.
   */
  subscribe(input: {
    teamId: string;
    workflowId: string | null;
    url: string;
    events: readonly string[];
    secret: string;
    /** Active webhooks that one workflow may have. */
    limit: number;
    /** Counts only for a new one; the defaults unless told. */
    settings?: WebhookSettings;
  }): Promise<
    | { outcome: 'created' | 'existing'; webhook: Webhook }
    | { outcome: 'workflow_not_found' }
    | { outcome: 'limit_reached' }
  >;
  /** A team's webhooks, or those of one workflow; oldest first. */
  list(input: { teamId: string; workflowId?: string }): Promise<Webhook[]>;
  get(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /** Webhooks with exactly this URL; oldest first. */
  byUrl(input: { teamId: string; url: string; workflowId?: string }): Promise<Webhook[]>;
  /**
   * Removes webhooks: nothing is loaded for them any more, and what waits for them is canceled, a large backlog
   * after the answer. Answers how many it removed.
   */
  unsubscribe(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /** The webhook's secret, sealed. */
  secret(input: { teamId: string; id: string }): Promise<string | undefined>;
  /** The webhook's own headers as sealed JSON; null when it has none. */
  headers(input: { teamId: string; id: string }): Promise<string | null | undefined>;
  /**
   * Gives it a new secret; the one before signs along until `overlapMs` are over. When one signs along already, that
   * one goes on, for nobody may have seen the one between. Without an overlap none does.
   */
  rotate(input: {
    teamId: string;
    id: string;
    secret: string;
    overlapMs: number;
  }): Promise<Webhook | undefined>;
  /** Changes how it is called; what is not named stays. `headers` are sealed JSON, null takes them away. */
  change(input: {
    teamId: string;
    id: string;
    settings?: Partial<WebhookSettings>;
    headers?: string | null;
  }): Promise<Webhook | undefined>;
  /**
   * Pauses it: what is due waits, though not longer than `expire` lets it. Event, unless it was paused already:
   * `webhook_paused`, to the other webhooks that hear of its workflow, or of the team.
   */
  pause(input: { teamId: string; id: string; reason: string }): Promise<Webhook | undefined>;
  /** Ends the pause and forgets since when it has failed. */
  resume(input: { teamId: string; id: string }): Promise<Webhook | undefined>;
  /**
   * Makes an event `webhook_test` for this webhook alone, whatever it has subscribed. To a paused one it is sent
   * when it is resumed, as all else.
   */
  test(input: { teamId: string; id: string }): Promise<{ eventId: string; deliveryId: string } | undefined>;
}

/** One webhook that has due deliveries, with all that sending to it needs. */
export interface DueLane extends LaneName {
  url: string;
  /** Sealed; the newest first, then the one before it while that still signs along. */
  secrets: string[];
  /** Sealed JSON. */
  headers: string | null;
  settings: WebhookSettings;
  failingSince: number | null;
}

/** Which deliveries of a webhook. Times are those of their making, in epoch milliseconds. */
export interface DeliveryFilter {
  teamId: string;
  webhookId: string;
  states?: readonly DeliveryState[];
  since?: number;
  until?: number;
}

export interface DeliverySummary {
  id: string;
  webhookId: string;
  eventId: string;
  eventType: EventType;
  origin: DeliveryOrigin;
  state: DeliveryState;
  attempt: number;
  nextAt: number | null;
  createdAt: number;
  /** The last attempt, without what came back. */
  last: { outcome: Attempt['outcome']; status: number | null; error: string | null; at: number } | null;
}

/** A replay of a selection, which goes on by itself until it has come to its end. */
export interface Replay {
  teamId: string;
  id: string;
  webhookId: string;
  states: DeliveryState[];
  since: number;
  until: number;
  /** Deliveries made so far. */
  made: number;
  state: 'running' | 'done';
  createdAt: number;
}

export interface DeliveryOperations {
  /** The webhooks that have deliveries due. Costs what the number of webhooks costs, not the backlog. */
  lanes(): Promise<DueLane[]>;
  /** One of them; nothing when it has nothing due, is paused, or is gone. */
  lane(input: LaneName): Promise<DueLane | undefined>;
  /**
   * Due deliveries of one active webhook, at most so many of each class, those due longest first. With `ordered` its
   * waiting deliveries in the order of their events, whether they are due or not, at most `live` of them.
   */
  load(input: LaneName & { limits: Record<DeliveryClass, number>; ordered: boolean }): Promise<DueDelivery[]>;
  /**
   * Writes down attempts and what follows from them, all in one transaction. `attempt` counts this attempt and
   * is its fence: a success is always taken, anything else only if the row has seen one attempt less.
   */
  settle(input: { settlements: readonly Settlement[] }): Promise<void>;
  /** A delivery with the body of its event and its attempts, oldest first. */
  get(input: {
    teamId: string;
    id: string;
  }): Promise<(DeliverySummary & { body: string; attempts: Attempt[] }) | undefined>;
  /** Deliveries of one webhook, newest first, those made before one. */
  list(input: DeliveryFilter & { before?: string; limit: number }): Promise<DeliverySummary[]>;
  /** Makes a new delivery of the same event to the same webhook (origin `replay`); answers its id. */
  replay(input: { teamId: string; id: string }): Promise<string | undefined>;
  /** Begins a replay of a selection: each event once, however many of its deliveries are selected. */
  startReplay(input: DeliveryFilter & { states: readonly DeliveryState[] }): Promise<Replay | undefined>;
  getReplay(input: { teamId: string; id: string }): Promise<Replay | undefined>;
  /**
   * Takes running replays a little further: at most `limit` new deliveries, and none for a webhook for which
   * `waiting` replayed ones wait already. To be called until done, and now and then.
   */
  stepReplays(input: { limit: number; waiting: number }): Promise<{ done: boolean }>;
  /**
   * Gives up deliveries that were made longer ago than `olderMs` and still wait, also those of paused webhooks: they
   * are dead. At most `limit` a call, to be called until done.
   */
  expire(input: { olderMs: number; limit: number }): Promise<{ done: boolean }>;
  /**
   * Deletes attempts older than `attemptsMs`, and events older than `eventsMs` with their deliveries, whatever the
   * age of those. An event that still has a delivery waiting stays, and the newest of each team. At most some
   * `limit` rows of each a call, to be called until done.
   */
  prune(input: { attemptsMs: number; eventsMs: number; limit: number }): Promise<{ done: boolean }>;
}

export interface Settlement {
  teamId: string;
  deliveryId: string;
  webhookId: string;
  attempt: number;
  log: Attempt;
  next: NextStep;
  /** What the attempt says of the endpoint, where that is news: it fails since then, or it is well. */
  health: 'failing' | 'well' | null;
}

/**
 * Places beside the records where the content of records may stand: bodies of events, what receivers answered and
 * the headers of that, why attempts and jobs failed and webhooks were paused, what runs wrote to their logs and said of their progress, what a run left for the
 * next one, the names of a version's fields.
 */
export type TextPlace =
  | 'event'
  | 'response'
  | 'attemptDetails'
  | 'attemptError'
  | 'pausedReason'
  | 'jobError'
  | 'jobLog'
  | 'jobProgress'
  | 'state'
  | 'fields';

/** One text of such a place. `key` finds it again; `about` is the event that a response or an error answers. */
export interface HeldText {
  key: string;
  workflowId: string | null;
  text: string;
  about: string | null;
}

/** One row of a record: the state that it had from version `addedIn` until before `removedIn`. */
export interface RecordRow {
  id: string;
  seq: number;
  addedIn: number;
  removedIn: number | null;
  body: string;
}

/** What keeps a person out of later runs. `workflowId` '' stands for every workflow of the team. */
export interface SuppressionRow {
  workflowId: string;
  kind: 'email' | 'id';
  hash: string;
}

/** A line of the audit, which names nobody: `subject` is a keyed hash. */
export interface AuditEntry {
  id: string;
  action: string;
  actor: string;
  workflowId: string | null;
  subject: string;
  details: unknown;
  createdAt: number;
}

/** Finding and erasing a person, in steps that are short for everybody else: see `records/erase.ts`. */
export interface ErasureOperations {
  /** Every workflow of a team, the archived ones too, with its definition as JSON text. */
  workflows(input: { teamId: string }): Promise<{ id: string; definition: string }[]>;
  /**
   * Looks at some rows of a workflow after a place and answers those whose text contains one of `needles`
   * (ASCII in lower case) or whose id is one of `ids`, whatever their version. `next` is null at the end.
   */
  scanRecords(input: {
    teamId: string;
    workflowId: string;
    needles: readonly string[];
    ids: readonly string[];
    after: string | null;
  }): Promise<{ rows: RecordRow[]; next: string | null }>;
  /** Looks at some texts of a place after a key, likewise; also those whose `about` contains a needle. */
  scanTexts(input: {
    teamId: string;
    workflowId: string | null;
    place: TextPlace;
    needles: readonly string[];
    after: string | null;
  }): Promise<{ texts: HeldText[]; next: string | null }>;
  /** Replaces texts that are still what they were. Answers how many. */
  rewrite(input: {
    teamId: string;
    place: TextPlace;
    texts: readonly { key: string; was: string; text: string }[];
  }): Promise<number>;
  /**
   * Removes records (at most 100) from every version, as if they had never been: totals stay true, `erasures`
   * grows. A run of the workflow that is under way starts over; a push fails. Answers the rows that it removed.
   */
  remove(input: { teamId: string; workflowId: string; seqs: readonly number[] }): Promise<number>;
  /** Keeps a person out of runs from now on; runs under way start over. Twice is harmless. */
  suppress(input: { teamId: string; entries: readonly SuppressionRow[] }): Promise<void>;
  /** What keeps people out of a workflow. */
  suppressed(input: { teamId: string; workflowId: string }): Promise<SuppressionRow[]>;
  audit(input: { teamId: string } & Omit<AuditEntry, 'id' | 'createdAt'>): Promise<void>;
  /** The audit of a team, oldest first. */
  audits(input: { teamId: string; limit: number }): Promise<AuditEntry[]>;
  /**
   * Brings what was erased off the disk: empties the write-ahead log, looks for `traces` in the bytes of the
   * database, and rewrites it when there are some and it is not larger than `rewriteBytes`. Answers whether
   * some are left, and whether the log could be emptied.
   */
  scrub(input: {
    traces: readonly string[];
    rewriteBytes: number;
  }): Promise<{ logEmptied: boolean; rewritten: boolean; tracesLeft: boolean }>;
}
