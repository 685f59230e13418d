/**
 * The Store: the interface to the database, one group of operations per noun. Short groups are declared here, long
 * ones in the `*-operations.ts` beside this file.
 *
 * Each operation is one transaction, unless its docstring says otherwise. Operations that change something take the
 * time from the store (`Store.now`), write the events and deliveries they cause in the same transaction, and resolve
 * only after the commit. `src/store/open.ts` opens a store; `src/store/conformance/` tests what every driver must
 * do.
 *
 * Any operation may reject with a `Problem` (`overloaded`, `database_unavailable`, `database_busy`, `stopping`). An
 * operation that takes a `Held` rejects with `FencedError`, and changes nothing, when that attempt is no longer
 * running.
 */
import type { Holdings, OwnQuotas } from '../model/quota.ts';
import type { ApiKey, Scope, Team } from '../model/team.ts';
import type { Definition, Workflow } from '../model/workflow.ts';
import type { AuditOperations } from './audit-operations.ts';
import type { ErasureOperations } from './erasure-operations.ts';
import type { IdempotencyKey } from './idempotent-call.ts';
import type { InspectorOperations } from './inspector-operations.ts';
import type { JobOperations, ScheduleOperations } from './job-operations.ts';
import type { Page } from './page.ts';
import type { RecordOperations } from './record-operations.ts';
import type { SessionOperations } from './session-operations.ts';
import type { StatusOperations } from './status-operations.ts';
import type { UsageOperations } from './usage-operations.ts';
import type {
  DeliveryOperations,
  EventOperations,
  LaneName,
  WebhookOperations,
} from './webhook-operations.ts';

export interface Store {
  readonly instance: InstanceOperations;
  readonly teams: TeamOperations;
  readonly keys: KeyOperations;
  readonly sessions: SessionOperations;
  readonly workflows: WorkflowOperations;
  readonly jobs: JobOperations;
  readonly schedules: ScheduleOperations;
  readonly records: RecordOperations;
  readonly events: EventOperations;
  readonly webhooks: WebhookOperations;
  readonly deliveries: DeliveryOperations;
  readonly inspectors: InspectorOperations;
  readonly erasure: ErasureOperations;
  readonly audit: AuditOperations;
  readonly status: StatusOperations;
  readonly usage: UsageOperations;

  /** The current time in epoch milliseconds, by the database's clock (or a test's). */
  now(): number;
  /**
   * Calls the listener after every commit that others may want to hear of: at once for this process's own commits,
   * within some 250 ms for another process's (reported as touching everything). It is only a hint: listeners must
   * also poll. Returns a function that unsubscribes.
   */
  watch(listener: (touched: Touched) => void): () => void;
  /** Health check for `/readyz`: resolves when a trivial read succeeds and no write is known to be failing. */
  check(): Promise<void>;
  /**
   * Copies the database into an empty file, without holding up who writes: the state of one commit. Only on SQLite, and
   * only of use to the process that owns the file; rejects when others write into it all the time.
   */
  copyTo(file: string, signal?: AbortSignal): Promise<void>;
  /** How long the oldest call still waiting in this process has waited, in milliseconds. */
  waitMs(): number;
  /** Waits for the writes under way and closes everything. Calling it twice is harmless. */
  close(): Promise<void>;
}

/** The few lookups that a worker thread needs, on a read-only connection of its own. */
export interface StoreReader {
  readonly records: Pick<RecordOperations, 'compare' | 'page' | 'version'>;
  /** To be called once. */
  close(): Promise<void>;
}

/** What a commit may have changed, for `Store.watch`. */
export interface Touched {
  keys: boolean;
  jobs: boolean;
  /** Cancellation of a running job was requested. */
  cancels: boolean;
  deliveries: boolean;
  /** The webhooks for which something became due, if they are few; null means that it may be any. */
  lanes: readonly LaneName[] | null;
}

export interface InstanceOperations {
  /** Stores a value under a name unless the name is taken; returns the stored value. */
  claim(input: { name: string; value: string }): Promise<string>;
  get(input: { name: string }): Promise<string | undefined>;
  /**
   * Acquires or renews this node's lease on a chore for `forMs`; returns whether the node holds it. At most one node
   * does. Always true on SQLite, where there is only one node.
   */
  lease(input: { name: string; nodeId: string; forMs: number }): Promise<boolean>;
}

export interface TeamOperations {
  /** The team with this slug, created if it is missing. */
  ensure(input: { slug: string }): Promise<Team>;
  get(input: { teamId: string }): Promise<Team | undefined>;
  bySlug(input: { slug: string }): Promise<Team | undefined>;
  /** A page of the teams, by id, which is the order in which they were made. */
  list(input: Page): Promise<Team[]>;
  /** Stores a signing key unless the team has one; returns the one it has. */
  ensureSigningKey(input: SigningKey): Promise<SigningKey>;
  /** Every signing key of the team that receivers should accept, oldest first. */
  signingKeys(input: { teamId: string }): Promise<SigningKey[]>;
  /**
   * Puts a team out of use, at once and for good: its keys are deleted, its slug becomes free, none of its jobs
   * start and nothing more is sent. While jobs are running it changes nothing, unless `force` is set; the caller
   * then has to cancel them. Returns the ids of the running jobs and the slug that the team had; undefined if there
   * is no such team.
   */
  retire(input: {
    teamId: string;
    force: boolean;
  }): Promise<{ outcome: 'retired' | 'running'; running: string[]; slug: string } | undefined>;
  /** A page of the retired teams whose rows are not all deleted yet, by id, with the slugs that they had. */
  retired(input: Page): Promise<{ id: string; slug: string }[]>;
  /**
   * Deletes the rows of a retired team, up to `limit` rows and some 1 MiB per call; call until `done`, when nothing of
   * the team is left. A run still under way is fenced off. Rejects with an Error if the team is not retired.
   */
  delete(input: { teamId: string; limit: number }): Promise<{ done: boolean }>;
  /** Replaces all of a team's own quotas. Those it has none of its own for are the instance's. */
  setQuotas(input: { teamId: string; quotas: OwnQuotas }): Promise<void>;
  /** The team's own quotas. */
  quotas(input: { teamId: string }): Promise<OwnQuotas>;
  /** How much the team uses of everything that has a quota. Goes through all of it: for the command line. */
  holdings(input: { teamId: string }): Promise<Holdings>;
}

/** A team's ed25519 key. `privateKey` is sealed; `publicKey` is the 32 raw bytes in base64. */
export interface SigningKey {
  teamId: string;
  id: string;
  publicKey: string;
  privateKey: string;
  createdAt: number;
}

export interface KeyOperations {
  /**
   * Stores a key. If the hash is already stored, nothing changes and the stored key is returned; so is, for 24 h, the key
   * that the first call with an idempotency key has made.
   *
   * @throws Problem `quota_reached`
   */
  create(input: {
    teamId: string;
    name: string;
    hash: string;
    prefix: string;
    scopes: readonly Scope[];
    expiresAt: number | null;
    idempotencyKey?: IdempotencyKey;
  }): Promise<ApiKey>;
  /** The key with this SHA-256, even if it is revoked or expired. */
  byHash(input: { hash: string }): Promise<ApiKey | undefined>;
  /** A key of the team, even if it is revoked or expired. */
  get(input: { teamId: string; id: string }): Promise<ApiKey | undefined>;
  /** A page of the keys of one team, or of all teams, by id, revoked ones included. */
  list(input: { teamId?: string } & Page): Promise<ApiKey[]>;
  /**
   * Revokes a key for good and returns it; undefined if there is no such key, or it is not the given team's. Revoking
   * twice is harmless.
   */
  revoke(input: { id: string; teamId?: string }): Promise<ApiKey | undefined>;
  /**
   * Creates a key with the name, scopes and expiry of a usable one, and ends the old one after `overlapMs`: with 0 it
   * is revoked, otherwise it expires then, if not sooner. Returns the new key; undefined if the old one is unusable.
   */
  rotate(input: {
    teamId: string;
    id: string;
    hash: string;
    prefix: string;
    overlapMs: number;
  }): Promise<ApiKey | undefined>;
  /** Records when keys were last used, unless a later use is stored. Does not notify watchers. */
  used(input: { keys: readonly { id: string; at: number }[] }): Promise<void>;
}

/** What tells whether a workflow's file is the one that was applied. */
export interface AppliedWorkflow {
  teamId: string;
  id: string;
  definitionHash: string;
  sourceType: Definition['source']['type'];
}

export interface WorkflowOperations {
  /**
   * Stores a definition; an archived workflow is restored with its data. `nextRunAt` applies only if the schedule has
   * changed, so that applying an unchanged one does not move its next run. With `expectedHash` it returns `stale`, and
   * changes nothing, unless the stored definition still has that hash.
   */
  apply(input: {
    teamId: string;
    id: string;
    definition: Definition;
    hash: string;
    nextRunAt: number | null;
    expectedHash?: string;
  }): Promise<'created' | 'changed' | 'unchanged' | 'restored' | 'stale'>;
  /** A workflow that is not archived. */
  get(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** A page of a team's workflows that are not archived, by id. */
  list(input: { teamId: string } & Page): Promise<Workflow[]>;
  /** A page of the workflows of all teams that are not archived, by team and id. */
  applied(input: Page<Pick<AppliedWorkflow, 'teamId' | 'id'>>): Promise<AppliedWorkflow[]>;
  /**
   * Archives workflows: the five contract operations then answer 404; the data is kept. Returns how many it
   * archived.
   */
  archive(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /** Pauses a workflow: it accepts no new jobs and starts none; a running one goes on. Pausing twice is harmless. */
  pause(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** Ends the pause. `nextRunAt` is when its schedule is due next; runs missed during the pause are not made up for. */
  resume(input: { teamId: string; id: string; nextRunAt: number | null }): Promise<Workflow | undefined>;
}
