/**
 * The Store: the interface to the database, one group of operations per noun.
 *
 * What an operation takes and returns is written at its function in `operations/<noun>.ts`; `operations/table.ts` lists
 * them all. Those that take several transactions are in `composed.ts`, and those that each driver has of its own are
 * declared here.
 *
 * Each operation is one transaction, unless its docstring says otherwise. Operations that change something take the
 * time from the store (`Store.now`), write the events and deliveries they cause in the same transaction, and resolve
 * only after the commit. `src/store/open.ts` opens a store; `src/store/conformance/` tests what every driver must
 * do.
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
/** What takes the place of the operations of the table, or comes beside them. */
type Special = OwnOperations & ReturnType<typeof composed>;

export type Store = OfProcess & {
  readonly [Group in keyof Calls]: Group extends keyof Special
    ? Omit<Calls[Group], keyof Special[Group]> & Special[Group]
    : Calls[Group];
};

/** What concerns this process's way to the database. */
interface OfProcess {
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

/** Operations of which each driver has its own way. */
export interface OwnOperations {
  jobs: {
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
    /**
     * Heartbeat: renews the leases of a node's attempts. Returns those that it no longer holds (`lost`), those that
     * are to be canceled, and those whose rows were locked, so that they are neither renewed nor lost (`late`).
     */
    beat(input: {
      nodeId: string;
      held: readonly AttemptLease[];
      leaseMs: number;
    }): Promise<{ lost: AttemptLease[]; canceled: AttemptLease[]; late?: AttemptLease[] }>;
  };
  deliveries: {
    /**
     * The lanes with due deliveries that this node holds, plus up to `limit` free ones that it leases now; each remains
     * leased for at least two thirds of `leaseMs`. A delivery dated further ahead than any can wait was dated before the
     * clock was set back, and counts as due. The cost grows with the number of webhooks, not with the backlog.
     */
    lanes(input: LaneHolder & { limit: number }): Promise<DueLane[]>;
    /** The same for one lane; undefined if nothing is due, it is paused or removed, or another node holds it. */
    lane(input: LaneName & LaneHolder): Promise<DueLane | undefined>;
    /**
     * Renews leases. Returns the lanes that the node no longer holds (`lost`), and those whose rows were locked, so that
     * they are neither renewed nor lost (`late`).
     */
    keepLanes(
      input: LaneHolder & { lanes: readonly HeldLane[] },
    ): Promise<{ lost: HeldLane[]; late: HeldLane[] }>;
    /** Gives up leases, so that any node may take the lanes at once. */
    releaseLanes(input: { nodeId: string; lanes: readonly HeldLane[] }): Promise<void>;
    /**
     * Due deliveries of one active webhook, longest due first, up to a limit per class. With `ordered`: its waiting
     * deliveries in the order of their events, due or not, up to `limits.live`. Those in `held` count towards the limits
     * and may be left out of the result. `first` is in the result if it is due, whatever the limits; not with `ordered`.
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
     * Removes what was erased from the disk as well: empties the write-ahead log, searches the bytes of the database for
     * `traces`, and rewrites it if it finds any and the database is not larger than `rewriteBytes`.
     */
    scrub(input: { traces: readonly string[]; rewriteBytes: number }): Promise<Scrubbed>;
  };
  status: {
    database(): Promise<DatabaseStatus>;
  };
}

/** The few lookups that a worker thread needs, on a read-only connection of its own. */
export interface StoreReader {
  readonly records: Pick<Store['records'], 'compare' | 'page' | 'version'>;
  /** To be called once. */
  close(): Promise<void>;
}

/** The result of scrubbing the disk. */
export interface Scrubbed {
  /** Whether the write-ahead log was emptied; null on PostgreSQL, whose log and replicas are out of reach. */
  logEmptied: boolean | null;
  /** Whether the database file was rewritten. */
  rewritten: boolean;
  /** Whether traces are left in the bytes of the database; null on PostgreSQL, whose files are out of reach. */
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
 * The size that SQLite's write-ahead log should not exceed. It is checkpointed at 16 MB, and cut to 64 when it was larger:
 * it grows beyond that only while another process reads one old state for long.
 */
export const MOST_LOG_BYTES = 100_000_000;
