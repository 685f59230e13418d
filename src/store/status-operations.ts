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

export interface StatusOperations {
  database(): Promise<DatabaseStatus>;
  work(input: { most: number }): Promise<WorkStatus>;
}
