/**
 * The Store is the interface to the database. It has one group of operations per noun.
 *
 * Each operation is documented at its function in `operations/<noun>.ts`, and `operations/table.ts` lists all
 * operations. Operations that take several transactions are in `composed.ts`. Operations that each driver implements
 * itself are declared in this file.
 *
 * Each operation is one transaction, unless its docstring says otherwise. An operation that changes something takes the
 * time from the store (`Store.now`), writes the events and deliveries that the change causes in the same transaction,
 * and resolves only after the commit. `src/store/open.ts` opens a store; `src/store/conformance/` tests what every
 * driver must do.
 *
 * Any operation may reject with a `Problem` (`overloaded`, `database_unavailable`, `database_busy`, `stopping`). An
 * operation that takes an `AttemptLease` rejects with `FencedError`, and changes nothing, if that attempt is no longer
 * running.
 */

import type { DeliveryClass, DueDelivery } from '../model/delivery.ts';
import type { AttemptLease } from '../model/job.ts';
import type { composed } from './composed.ts';
import type { CallsOf } from './operation.ts';
import type { ClaimedJob } from './operations/attempts.ts';
import type { DueLane, HeldLane, LaneHolder, Takes } from './operations/lanes.ts';
import type { OPERATIONS } from './operations/table.ts';
import type { LaneName, Touched } from './transaction.ts';

type Calls = CallsOf<typeof OPERATIONS>;
/** Operations that replace operations of the table, or that are added to them. */
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
   * Calls the listener after every commit with a change that others wait for. Commits of this process are reported
   * immediately. Commits of other processes are reported within about 250 ms, as if everything had changed.
   * Notifications are only hints, so listeners must also poll. Returns a function that removes the listener.
   */
  watch(listener: (touched: Touched) => void): () => void;
  /**
   * Whether `watch` currently reports the commits of other processes. False on PostgreSQL without a connection that
   * hears notifications, for example behind a proxy that pools transactions. Listeners must then poll more often.
   */
  isTold(): boolean;
  /** Checks the database for `/readyz`: resolves if a trivial read succeeds and writes are not known to fail. */
  check(): Promise<void>;
  /**
   * Copies the database, as of one commit, into an empty file without blocking writers. Works only on SQLite, and is
   * useful only in the process that owns the database; rejects if other processes keep writing.
   */
  copyTo(file: string, signal?: AbortSignal): Promise<void>;
  /**
   * Whether settlements that are written now probably share a transaction with other calls of this process, and so cost
   * no commit of their own. Always false on PostgreSQL, where each batch of settlements is a transaction.
   */
  sharesCommit(): boolean;
  /** How long the oldest of this process's waiting calls has been waiting, in milliseconds. */
  waitMs(): number;
  /** Waits until running writes have ended, and closes everything. Calling it twice is harmless. */
  close(): Promise<void>;
}

/** Operations that each driver implements itself. */
export interface OwnOperations {
  jobs: {
    /**
     * Claims up to `limit` due jobs for a node. The jobs are then running, with a lease and the next attempt number.
     * Jobs of the team with the fewest running jobs come first, and no team gets more than `perTeam`. Within a team,
     * the highest priority comes first, then the job that has been due longest. Event, on a job's first attempt:
     * `workflow_started`.
     */
    claim(input: {
      nodeId: string;
      limit: number;
      leaseMs: number;
      /** Maximum number of running jobs per team on all nodes together. A team's own quota takes precedence. */
      perTeam: number;
      /** Workflows that this node must not run, because its workflow files differ from the applied definitions. */
      except?: readonly { teamId: string; workflowId: string }[];
      /**
       * Teams with running jobs on this node. If the database has more than one team, the last of the `limit` places is
       * reserved for a team that is not in this list and gets no other place in this claim. Without the list, no place
       * is reserved.
       */
      busy?: readonly string[];
      /**
       * Receives teams whose server failed while their jobs were claimed: the table may show such jobs as running on
       * this node. Without the set, the whole claim rejects.
       */
      unsure?: Set<string>;
    }): Promise<ClaimedJob[]>;
    /**
     * When the first waiting job is due, in epoch milliseconds; null if no job is waiting. Jobs of paused and archived
     * workflows are left out. The cost grows with the number of teams with waiting jobs, not with the backlog.
     */
    nextDueAt(): Promise<number | null>;
    /**
     * Renews the leases of a node's attempts (heartbeat). Returns the attempts that the node no longer holds (`lost`),
     * the attempts that must be canceled, and the attempts whose rows were locked, so that they were neither renewed
     * nor lost (`late`). Each list is in any order.
     */
    beat(input: {
      nodeId: string;
      held: readonly AttemptLease[];
      leaseMs: number;
    }): Promise<{ lost: AttemptLease[]; canceled: AttemptLease[]; late?: AttemptLease[] }>;
  };
  deliveries: {
    /**
     * Returns the lanes with due deliveries that this node holds, plus up to `limit` free lanes that it leases now.
     * Each lane stays leased for at least two thirds of `leaseMs`. A delivery that is dated further ahead than any
     * retry was created or retried before the clock was set back, and counts as due. The cost grows with the number of
     * webhooks of teams that may have due deliveries, not with the backlog or with idle teams. If many teams may have
     * due deliveries, only some of them are searched, and the others by the next calls. The teams that were searched are
     * added to `asked`.
     */
    lanes(input: LaneHolder & Takes & { limit: number; asked?: Set<string> }): Promise<DueLane[]>;
    /**
     * Like `lanes`, but for one lane. Returns undefined if nothing is due, if the webhook is paused or removed, or if
     * another node holds the lane.
     */
    lane(input: LaneName & LaneHolder & Takes): Promise<DueLane | undefined>;
    /**
     * Renews the leases of lanes. Returns the lanes that the node no longer holds (`lost`), and the lanes whose rows
     * were locked, so that they were neither renewed nor lost (`late`).
     */
    keepLanes(
      input: LaneHolder & { lanes: readonly HeldLane[] },
    ): Promise<{ lost: HeldLane[]; late: HeldLane[] }>;
    /** Releases leases, so that any node may lease these lanes immediately. */
    releaseLanes(input: { nodeId: string; lanes: readonly HeldLane[] }): Promise<void>;
    /**
     * Loads due deliveries of one active webhook, longest due first, up to a limit per class. With `ordered`, loads
     * waiting deliveries in the order of their events instead, due or not, up to `limits.live`. Deliveries in `held`
     * count towards the limits and may be missing from the result. Without `ordered`, the delivery `first` is in the
     * result if it is due, even above the limits.
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
     * Removes erased data from the disk: empties the write-ahead log and searches the bytes of the database for
     * `traces`. If the database contains any of them and is not larger than `rewriteBytes`, the database is rewritten.
     */
    scrub(input: { traces: readonly string[]; rewriteBytes: number }): Promise<Scrubbed>;
  };
  status: {
    database(): Promise<DatabaseStatus>;
  };
}

/** The few reads that a worker thread needs, on a read-only connection of its own. */
export interface StoreReader {
  readonly records: Pick<Store['records'], 'compare' | 'page' | 'version' | 'changes'>;
  readonly quarantine: Pick<Store['quarantine'], 'keys'>;
  readonly profiles: Pick<Store['profiles'], 'earlier'>;
  readonly decisions: Pick<
    Store['decisions'],
    'pending' | 'quiet' | 'ended' | 'forPeople' | 'digest' | 'endedDigest'
  >;
  /** To be called once. */
  close(): Promise<void>;
}

export interface Scrubbed {
  /** Whether the write-ahead log was emptied; null on PostgreSQL, whose log and replicas Flowhook cannot access. */
  logEmptied: boolean | null;
  /** Whether the database was rewritten. */
  rewritten: boolean;
  /** Whether the bytes of the database still contain traces; null on PostgreSQL, whose files Flowhook cannot access. */
  tracesLeft: boolean | null;
}

export interface DatabaseStatus {
  kind: 'sqlite' | 'postgres';
  /** The version of SQLite or PostgreSQL, such as `3.50.4`. */
  version: string;
  bytes: number;
  /** Size of the write-ahead log in bytes; null on PostgreSQL, where all databases of a server share a log. */
  walBytes: number | null;
  /** Schema version: the number of the last migration. */
  schema: number;
}

/**
 * The size in bytes that SQLite's write-ahead log should not exceed. The log is checkpointed at 16 MB, and truncated to
 * 64 MB if it was larger. It grows further only while another process reads an old state of the database for a long
 * time.
 */
export const MOST_LOG_BYTES = 100_000_000;
