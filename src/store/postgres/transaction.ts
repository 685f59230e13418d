/** What every operation gets: a connection, the time and, for writes, what the commit will have touched. */
import type { Quotas } from '../../model/quota.ts';
import type { Touched } from '../store.ts';
import type { Database } from './database.ts';

/**
 * For reads: each statement runs by itself, on any connection; reads that must be consistent with each other go into
 * `db.snapshot`. `now` is in epoch milliseconds.
 */
export interface View {
  readonly db: Database;
  readonly now: number;
}

/** For writes, inside a transaction. The operation may be retried, so it must have no effect outside the database. */
export interface Tx extends View {
  /** The URL of the service as others reach it, for the bodies of events. */
  readonly publicUrl: string;
  /** For teams without quotas of their own. */
  readonly quotas: Quotas;
  /** What watchers are told after the commit. */
  readonly touched: Touched;
  /** The last sequence number assigned to an event of each team: until the commit nobody else assigns any. */
  readonly sequences: Map<string, Promise<number>>;
  /** The counter of key changes, when this transaction changes keys. */
  keysChanged?: number;
  /** An earlier call has done this already, so that no audit line is written. */
  repeated?: boolean;
}
