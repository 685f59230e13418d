/** How the database and the work in it stand: a part of the Store, see `store.ts` for what holds of all operations. */

export interface DatabaseStatus {
  kind: 'sqlite' | 'postgres';
  /** Of the database itself, such as `3.50.4`. */
  version: string;
  bytes: number;
  /** Of the write-ahead log; null on PostgreSQL, where it is that of a whole server. */
  walBytes: number | null;
  /** Version of the tables. */
  schema: number;
}

/** Of all teams. Nothing is counted beyond the bound that was given: then it is not `complete`. */
export interface WorkStatus {
  jobs: { queued: number; running: number; retrying: number; complete: boolean };
  deliveries: {
    waiting: number;
    /** When the one was made that has waited longest; in epoch milliseconds. */
    oldestWaitingAt: number | null;
    complete: boolean;
  };
}

/** Active webhooks that something is due for, of all teams. */
export interface DueStatus {
  webhooks: number;
  /** When that was due that has been due longest; in epoch milliseconds. */
  oldestDueAt: number | null;
}

export interface StatusOperations {
  database(): Promise<DatabaseStatus>;
  work(input: { most: number }): Promise<WorkStatus>;
  /** Apart for those whose last attempt failed, for they wait as long as their endpoints want. */
  due(): Promise<{ well: DueStatus; failing: DueStatus }>;
  /** The version of the tables, and the one that this code has migrations for. */
  schema(): Promise<{ found: number; newest: number }>;
}
