/** Status of the database and its workload: part of the Store; `store.ts` says what all operations have in common. */

/**
 * The size that SQLite's write-ahead log should not exceed. It is checkpointed at 16 MB, and cut to 64 when it was larger:
 * it grows beyond that only while another process reads one old state for long.
 */
export const MOST_LOG_BYTES = 100_000_000;

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

/** Unfinished work of all teams. Counts stop at the bound given, and then are not `complete`. */
export interface WorkStatus {
  jobs: { queued: number; running: number; retrying: number; complete: boolean };
  deliveries: {
    waiting: number;
    /** When the oldest one was created; epoch milliseconds. */
    oldestWaitingAt: number | null;
    complete: boolean;
  };
}

/** Active webhooks of all teams that have deliveries due. */
export interface DueStatus {
  webhooks: number;
  /** Since when the longest overdue delivery has been due; epoch milliseconds. */
  oldestDueAt: number | null;
}

export interface StatusOperations {
  database(): Promise<DatabaseStatus>;
  work(input: { most: number }): Promise<WorkStatus>;
  /** Webhooks whose last attempt failed are counted apart: how long they are overdue is up to their endpoints. */
  due(): Promise<{ well: DueStatus; failing: DueStatus }>;
  /** The schema version found, and the newest one that this code knows. */
  schema(): Promise<{ found: number; newest: number }>;
}
