/**
 * The Store: the interface to the database, one group of operations per noun.
 *
 * Each operation is documented at its function in `operations/<noun>.ts`; `operations/table.ts` lists them all.
 * Operations that take several transactions are in `composed.ts`. Operations that each driver implements itself are
 * declared here.
 *
 * Each operation is one transaction, unless its docstring says otherwise. Operations that change something take the
 * time from the store (`Store.now`), write the events and deliveries they cause in the same transaction, and resolve
 * only after the commit. `src/store/open.ts` opens a store; `src/store/conformance/` tests what every driver must do.
 *
 * Any operation may reject with a `Problem` (`overloaded`, `database_unavailable`, `database_busy`, `stopping`). An
 * operation that takes an `AttemptLease` rejects with `FencedError`, and changes nothing, when that attempt is no longer
 * running.
 */

import type { DeliveryClass, DueDelivery } from '../model/delivery.ts';
import type { AttemptLease } from '../model/job.ts';
import type { composed } from './composed.ts';
import type { CallsOf } from './operation.ts';
import type { ClaimedJob } from './operations/attempts.ts';
import type { DueLane, HeldLane, LaneHolder } from './operations/lanes.ts';
import type { OPERATIONS } from './operations/table.ts';
import type { LaneName, Touched } from './transaction.ts';

type Calls = CallsOf<typeof OPERATIONS>;
/** Operations that replace those of the table, or are added to them. */
type Special = OwnOperations & ReturnType<typeof composed>;

export type Store = OfProcess & {
  readonly [Group in keyof Calls]: Group extends keyof Special
    ? Omit<Calls[Group], keyof Special[Group]> & Special[Group]
    : Calls[Group];
};

/** This process's connection to the database. */
interface OfProcess {
  /** The current time in epoch milliseconds, by the database's clock (or a test's). */
  now(): number;
  /**
   * Calls the listener after every commit that changed something others wait for: immediately for this process's own
   * commits, within about 250 ms for other processes' (reported as touching everything). Notifications are only hints:
   * listeners must also poll. Returns a function that unsubscribes.
   */
  watch(listener: (touched: Touched) => void): () => void;
  /** Health check for `/readyz`: resolves when a trivial read succeeds and writes are not known to fail. */
  check(): Promise<void>;
  /**
   * Copies the state of one commit into an empty file without blocking writers. Only on SQLite, and only useful in the
   * process that owns the file; rejects when other processes keep writing.
   */
  copyTo(file: string, signal?: AbortSignal): Promise<void>;
  /** How long the oldest call still waiting in this process has waited, in milliseconds. */
  waitMs(): number;
  /** Waits for running writes and closes everything. Calling it twice is harmless. */
  close(): Promise<void>;
}

/** Operations that each driver implements itself. */
export interface OwnOperations {
  jobs: {
    /**
     * Claims up to `limit` due jobs for a node: they become running, with attempt + 1 and a lease. The team with the
     * fewest running jobs comes first, and no team gets more than `perTeam`. Within a team, the highest priority comes
     * first, then the job that has been due longest. Event, on a job's first attempt: `workflow_started`.
     */
    claim(input: {
      nodeId: string;
      limit: number;
      leaseMs: number;
      /** Maximum running jobs per team on all nodes together, unless the team has a quota of its own. */
      perTeam: number;
      /** Workflows that this node must not run, because its files differ from the applied definition. */
      except?: readonly { teamId: string; workflowId: string }[];
      /**
       * Teams with running jobs on this node. While there is more than one team, the last of the `limit` places is
       * reserved for a team that neither is in this list nor got another place from this claim. Without the list, no
       * place is reserved.
       */
      busy?: readonly string[];
    }): Promise<ClaimedJob[]>;
    /**
     * Heartbeat: renews the leases of a node's attempts. Returns those that the node no longer holds (`lost`), those that
     * must be canceled, and those whose rows were locked, so that they were neither renewed nor lost (`late`).
     */
    beat(input: {
      nodeId: string;
      held: readonly AttemptLease[];
      leaseMs: number;
    }): Promise<{ lost: AttemptLease[]; canceled: AttemptLease[]; late?: AttemptLease[] }>;
  };
  deliveries: {
    /**
     * The lanes with due deliveries that this node holds, plus up to `limit` free ones that it leases now. Each stays
     * leased for at least two thirds of `leaseMs`. A delivery with a date further ahead than any retry was dated before
     * the clock was set back, and counts as due. The cost grows with the number of webhooks, not with the backlog.
     */
    lanes(input: LaneHolder & { limit: number }): Promise<DueLane[]>;
    /** As `lanes`, for one lane; undefined if nothing is due, it is paused or removed, or another node holds it. */
    lane(input: LaneName & LaneHolder): Promise<DueLane | undefined>;
    /**
     * Renews leases. Returns the lanes that the node no longer holds (`lost`), and those whose rows were locked, so that
     * they were neither renewed nor lost (`late`).
     */
    keepLanes(
      input: LaneHolder & { lanes: readonly HeldLane[] },
    ): Promise<{ lost: HeldLane[]; late: HeldLane[] }>;
    /** Releases leases, so that any node may take the lanes immediately. */
    releaseLanes(input: { nodeId: string; lanes: readonly HeldLane[] }): Promise<void>;
    /**
     * Due deliveries of one active webhook, longest due first, up to a limit per class. With `ordered`: its waiting
     * deliveries in the order of their events, due or not, up to `limits.live`. Deliveries in `held` count towards the
     * limits and may be missing from the result. `first` is in the result if it is due, even above the limits; not with
     * `ordered`.
     */
    load(
      input: LaneName & {
        limits: Record<DeliveryClass, number>;
        ordered: boolean;
        held?: { has(id: string): boolean };
        first?: string | undefined;
      },
    ): Promise<DueDelivery[]>;
  };
  erasure: {
    /**
     * Removes erased data from the disk: empties the write-ahead log, searches the bytes of the database for `traces`, and
     * rewrites the database if it contains any and is not larger than `rewriteBytes`.
     */
    scrub(input: { traces: readonly string[]; rewriteBytes: number }): Promise<Scrubbed>;
  };
  status: {
    database(): Promise<DatabaseStatus>;
  };
}

/** The few reads that a worker thread needs, on a read-only connection of its own. */
export interface StoreReader {
  readonly records: Pick<Store['records'], 'compare' | 'page' | 'version'>;
  /** To be called once. */
  close(): Promise<void>;
}

export interface Scrubbed {
  /** Whether the write-ahead log was emptied; null on PostgreSQL, whose log and replicas are out of reach. */
  logEmptied: boolean | null;
  /** Whether the database was rewritten. */
  rewritten: boolean;
  /** Whether the bytes of the database still contain traces; null on PostgreSQL, whose files are out of reach. */
  tracesLeft: boolean | null;
}

export interface DatabaseStatus {
  kind: 'sqlite' | 'postgres';
  /** Of SQLite or PostgreSQL itself, such as `3.50.4`. */
  version: string;
  bytes: number;
  /** Size of the write-ahead log; null on PostgreSQL, whose log is shared by a whole server. */
  walBytes: number | null;
  /** Schema version: the number of the last migration. */
  schema: number;
}

/**
 * The size that SQLite's write-ahead log should not exceed. It is checkpointed at 16 MB, and truncated to 64 MB if it was
 * larger: it grows beyond that only while another process reads an old state for a long time.
 */
export const MOST_LOG_BYTES = 100_000_000;
