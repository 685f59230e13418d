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
import type { Attempt, DeliveryState, DueDelivery, NextStep } from '../model/delivery.ts';
import type { EventType } from '../model/event.ts';
import type {
  AfterFailure,
  FailureReason,
  Held,
  Job,
  JobOrigin,
  ProcessMark,
  RecordCounts,
} from '../model/job.ts';
import type { ApiKey, Scope, Team } from '../model/team.ts';
import type { Webhook } from '../model/webhook.ts';
import type { Definition, Mode, Workflow } from '../model/workflow.ts';

export interface Store {
  readonly instance: InstanceOperations;
  readonly teams: TeamOperations;
  readonly keys: KeyOperations;
  readonly workflows: WorkflowOperations;
  readonly jobs: JobOperations;
  readonly records: RecordOperations;
  readonly events: EventOperations;
  readonly webhooks: WebhookOperations;
  readonly deliveries: DeliveryOperations;

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

/** What a commit may have changed, for those who watch. */
export interface Touched {
  keys: boolean;
  jobs: boolean;
  deliveries: boolean;
}

export interface InstanceOperations {
  /** Stores a value under a name unless one is there; answers what is stored now. */
  claim(input: { name: string; value: string }): Promise<string>;
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
  /** Stores a definition. An archived workflow comes back with its data. */
  apply(input: {
    teamId: string;
    id: string;
    definition: Definition;
    hash: string;
  }): Promise<'created' | 'changed' | 'unchanged' | 'restored'>;
  /** A workflow that is not archived. */
  get(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** A team's workflows that are not archived, by id. */
  list(input: { teamId: string }): Promise<Workflow[]>;
  /** Archives workflows: the five operations then answer 404, the data is kept. Answers how many it archived. */
  archive(input: { teamId: string; ids: readonly string[] }): Promise<number>;
}

/** What became of a request to queue a job. `job` on `occupied` is the one in the way. */
export type Enqueued =
  | { outcome: 'queued'; job: Job }
  | { outcome: 'replayed'; job: Job }
  | { outcome: 'occupied'; job: Job }
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
   * Takes up to `limit` due jobs for a node, those due longest first: running, attempt + 1, a lease.
   * Event, at a job's first attempt: `workflow_started`.
   */
  claim(input: { nodeId: string; limit: number; leaseMs: number }): Promise<ClaimedJob[]>;
  /** Records the child process of an attempt, or that it has ended. */
  setProcess(input: { held: Held; process: ProcessMark | null }): Promise<void>;
  /** Renews the leases of a node's attempts; answers the job ids that it no longer holds. */
  beat(input: { nodeId: string; held: readonly Held[]; leaseMs: number }): Promise<{ lost: string[] }>;
  /**
   * Ends an attempt that failed, as `then` says (see `model/job.ts`). Event, when the job ends:
   * `workflow_failed`. A job that waits behind moves up.
   */
  fail(input: {
    held: Held;
    reason: FailureReason;
    error: string;
    failures: number;
    then: AfterFailure;
  }): Promise<void>;
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
  /** When the next waiting job is due, or nothing when none waits. */
  nextRunAt(): Promise<number | undefined>;
}

/** A running job without a living holder, and the process that it may have left behind. */
export interface Abandoned {
  held: Held;
  workflowId: string;
  process: ProcessMark | null;
}

/** One record as ingest hands it over: its id and its JSON text, which contains that id. */
export interface StagedRecord {
  id: string;
  body: string;
}

/** What staging a batch came to. */
export interface Staged {
  /** The `seq` of each record of the batch, in order. */
  seqs: number[];
  /** Records that this run had already written before; with `append` also those that were there already. */
  duplicates: number;
}

export type Published =
  | { outcome: 'published'; version: number; records: RecordCounts }
  | { outcome: 'unchanged'; version: number; records: RecordCounts }
  /** A guard refused; nothing was changed. `error` says which and why. */
  | { outcome: 'guarded'; error: string };

/** Records are rows that know since when and until when: DESIGN section 7. */
export interface RecordOperations {
  /**
   * Removes what earlier attempts wrote without publishing, up to `limit` rows a call; answers whether nothing
   * is left. To be called until it does, before the first `stage` of an attempt.
   */
  sweep(input: { held: Held; limit: number }): Promise<{ done: boolean }>;
  /** Writes one batch (at most 500 records, 1 MiB) under the next version, unseen by readers. */
  stage(input: { held: Held; mode: Mode; records: readonly StagedRecord[] }): Promise<Staged>;
  /** The `seq` of records of the current state after one, in order: to find what a run has not seen. */
  currentSeqs(input: { held: Held; afterSeq: number; limit: number }): Promise<number[]>;
  /** Marks records as removed in the next version. */
  remove(input: { held: Held; seqs: readonly number[] }): Promise<void>;
  /**
   * Ends the attempt: moves the workflow's current version if anything changed, finishes the job, stores the
   * incremental state. Events: `workflow_data_change` if anything changed, then `workflow_finished`.
   */
  publish(input: { held: Held; guards: Definition['guards']; state: unknown }): Promise<Published>;
  /** The version that readers see, or nothing for an unknown workflow. */
  version(input: { teamId: string; workflowId: string }): Promise<DataVersion | undefined>;
  /** One page of a version: JSON objects joined by commas. An empty page (count 0) ends the reading. */
  page(input: {
    teamId: string;
    workflowId: string;
    version: number;
    afterSeq: number;
    rows: number;
  }): Promise<RecordPage>;
}

export interface DataVersion {
  /** 0 before the first published run. */
  number: number;
  oldest: number;
  /** How many records it holds. */
  total: number;
  /** The byte length of its longest record, or more. */
  largest: number;
}

export interface RecordPage {
  /** UTF-8. */
  json: Uint8Array;
  count: number;
  lastSeq: number;
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
}

export interface WebhookOperations {
  /**
   * Subscribes, unless the same team, workflow, URL and set of events is there already: that one is answered,
   * resumed if it was paused. `secret` (sealed) is used only for a new one.
   */
  subscribe(input: {
    teamId: string;
    workflowId: string;
    url: string;
    events: readonly string[];
    secret: string;
    /** Active webhooks that one workflow may have. */
    limit: number;
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
}

/** One webhook that has due deliveries, with all that sending to it needs. */
export interface DueLane {
  teamId: string;
  webhookId: string;
  url: string;
  /** Sealed. */
  secret: string;
}

export interface DeliveryOperations {
  /** The webhooks that have deliveries due. Costs what the number of webhooks costs, not the backlog. */
  lanes(): Promise<DueLane[]>;
  /** Due deliveries of one active webhook, those due longest first. */
  load(input: { teamId: string; webhookId: string; limit: number }): Promise<DueDelivery[]>;
  /**
   * Writes down attempts and what follows from them, all in one transaction. `attempt` counts this attempt and
   * is its fence: a success is always taken, anything else only if the row has seen one attempt less.
   */
  settle(input: { settlements: readonly Settlement[] }): Promise<void>;
  /** Attempts of a delivery, oldest first, with its state. */
  get(input: {
    teamId: string;
    id: string;
  }): Promise<{ state: DeliveryState; webhookId: string; eventId: string; attempts: Attempt[] } | undefined>;
  /** Deliveries of one webhook, newest first. */
  list(input: {
    teamId: string;
    webhookId: string;
    limit: number;
  }): Promise<
    { id: string; eventId: string; state: DeliveryState; attempt: number; nextAt: number | null }[]
  >;
}

export interface Settlement {
  teamId: string;
  deliveryId: string;
  webhookId: string;
  attempt: number;
  log: Attempt;
  next: NextStep;
}
