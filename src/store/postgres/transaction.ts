/** What the functions of the store are handed: a connection, the time, and what a commit will have touched. */
import type { Quotas } from '../../model/quota.ts';
import type { Touched } from '../store.ts';
import type { Database } from './database.ts';

/**
 * For reading: every statement by itself, on any connection; what must fit together goes into `db.snapshot`. `now` is
 * in epoch milliseconds.
 */
export interface View {
  readonly db: Database;
  readonly now: number;
}

/** For writing, inside a transaction. It may be run once more: what it does outside the database must not count. */
export interface Tx extends View {
  /** Where the service is reached from outside; stands in the bodies of events. */
  readonly publicUrl: string;
  /** What teams may have of which nothing else was said. */
  readonly quotas: Quotas;
  /** What the watchers will be told after the commit. */
  readonly touched: Touched;
  /** The last number that an event of a team has been given here: nobody else gives any until the commit. */
  readonly sequences: Map<string, Promise<number>>;
  /** When it changes keys: how often they have been changed then. */
  keysChanged?: number;
  /** The operation has found done what it was asked for, by an earlier call: whatever it tells was told then. */
  repeated?: boolean;
}
