/**
 * THE store: everything that can happen to the tables, one group of operations per noun. The long groups stand in
 * files beside this one.
 *
 * Each operation is one transaction. Operations that change something take the time from the store
 * (`Store.now`), write the events and deliveries that they cause in the same transaction, and answer only after
 * the commit. `src/store/conformance/` says what every driver must do; `src/store/open.ts` opens one.
 *
 * Any operation may reject with a `Problem` (`overloaded`, `database_unavailable`, `database_busy`, `stopping`). An
 * operation that takes a `Held` rejects with `FencedError`, and changes nothing, when that attempt no longer runs.
 */
import type { Holdings, OwnQuotas } from '../model/quota.ts';
import type { ApiKey, Scope, Team } from '../model/team.ts';
import type { Definition, Workflow } from '../model/workflow.ts';
import type { AuditOperations } from './audit-operations.ts';
import type { ErasureOperations } from './erasure-operations.ts';
import type { InspectorOperations } from './inspector-operations.ts';
import type { JobOperations, ScheduleOperations } from './job-operations.ts';
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

  /** The present in epoch milliseconds: the database's clock, or a test's. */
  now(): number;
  /**
   * Calls back after every commit that may concern others: at once for this process's own, within some 250 ms
   * for another process's (which is then reported as touching everything). A hint only: whoever listens also
   * polls. Returns a function that ends the watching.
   */
  watch(listener: (touched: Touched) => void): () => void;
  /** Resolves when a trivial read works and, as far as is known, a write; else rejects: what `/readyz` asks. */
  check(): Promise<void>;
  /** How long, in milliseconds, the call of this process has waited for its turn that waits longest. */
  waitMs(): number;
  /** Waits for the writes under way and closes everything. Calling it twice is harmless. */
  close(): Promise<void>;
}

/** What a thread of its own may look up, on a connection of its own that cannot write. */
export interface StoreReader {
  readonly records: Pick<RecordOperations, 'compare' | 'page' | 'version'>;
  /** To be called once. */
  close(): Promise<void>;
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

export interface InstanceOperations {
  /** Stores a value under a name unless one is there; answers what is stored now. */
  claim(input: { name: string; value: string }): Promise<string>;
  get(input: { name: string }): Promise<string | undefined>;
  /**
   * Takes a chore for this node, or keeps it, for so long from now. Answers whether the node has it: of any number
   * of nodes one has. A database that belongs to one process says yes.
   */
  lease(input: { name: string; nodeId: string; forMs: number }): Promise<boolean>;
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
  /**
   * Takes a team away from everybody, at once and for good: its keys are gone, its slug is free, nothing of it starts
   * and nothing is sent any more. Changes nothing when jobs are running, unless `force` says so: those are to be
   * canceled. Answers the ids of the running jobs, and what the team was called; nothing when there is no such team.
   */
  retire(input: {
    teamId: string;
    force: boolean;
  }): Promise<{ outcome: 'retired' | 'running'; running: string[]; slug: string } | undefined>;
  /** Retired teams that are not deleted yet, with the slugs that they had. */
  retired(): Promise<{ id: string; slug: string }[]>;
  /**
   * Deletes what a retired team has, up to `limit` rows and some 1 MiB a call; a run under way ends as one that has lost
   * its job. To be called until done: then nothing is left of it. Rejects with an Error for a team that is in use.
   */
  delete(input: { teamId: string; limit: number }): Promise<{ done: boolean }>;
  /** Says what a team may have, in place of all that was said before; of the rest it has what the instance allows. */
  setQuotas(input: { teamId: string; quotas: OwnQuotas }): Promise<void>;
  /** What was said of a team. */
  quotas(input: { teamId: string }): Promise<OwnQuotas>;
  /** How much a team has of what there are quotas for. */
  holdings(input: { teamId: string }): Promise<Holdings>;
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
  /**
   * Revokes a key for good; answers it, or nothing if there is none, or none of the team that is named. Revoking
   * twice is harmless.
   */
  revoke(input: { id: string; teamId?: string }): Promise<ApiKey | undefined>;
  /**
   * Makes a key with the name, scopes and expiry of one that can be used, which ends after `overlapMs`: it is
   * revoked when that is 0, else it expires then, if not sooner. Answers the new key, or nothing if there is none
   * that can be used.
   */
  rotate(input: {
    teamId: string;
    id: string;
    hash: string;
    prefix: string;
    overlapMs: number;
  }): Promise<ApiKey | undefined>;
  /** Notes when keys were used last, unless something later stands there. Nobody is told: no key has changed. */
  used(input: { keys: readonly { id: string; at: number }[] }): Promise<void>;
}

export interface AppliedWorkflow {
  teamId: string;
  id: string;
  definitionHash: string;
  sourceType: Definition['source']['type'];
}

export interface WorkflowOperations {
  /**
   * Stores a definition. An archived workflow comes back with its data. `nextRunAt` counts when the schedule is not
   * the one that was there; one that has not changed keeps its time. With `expectedHash` it is `stale`, and nothing is
   * changed, unless that is the definition's hash still.
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
  /** A team's workflows that are not archived, by id: all of them, or some behind an id. */
  list(input: { teamId: string; after?: string; limit?: number }): Promise<Workflow[]>;
  /** Of every team's workflows that are not archived what tells whether a file is the one that was applied. */
  applied(): Promise<AppliedWorkflow[]>;
  /** Archives workflows: the five operations then answer 404, the data is kept. Answers how many it archived. */
  archive(input: { teamId: string; ids: readonly string[] }): Promise<number>;
  /** Pauses a workflow: it takes no new jobs and starts none; what runs goes on. Twice is harmless. */
  pause(input: { teamId: string; id: string }): Promise<Workflow | undefined>;
  /** Ends the pause. `nextRunAt` is when its schedule is due next: what fell into the pause is not made up for. */
  resume(input: { teamId: string; id: string; nextRunAt: number | null }): Promise<Workflow | undefined>;
}
