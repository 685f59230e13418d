/** What the functions of the store are handed: a connection, the time, and what a commit will have touched. */
import type { Quotas } from '../../model/quota.ts';
import type { Touched } from '../store.ts';
import type { Database } from './database.ts';

/** For reading. `now` is in epoch milliseconds. */
export interface View {
  readonly db: Database;
  readonly now: number;
}

/** For writing, inside a transaction of the writer thread. */
export interface Tx extends View {
  /** Where the service is reached from outside; stands in the bodies of events. */
  readonly publicUrl: string;
  /** What teams may have of which nothing else was said. */
  readonly quotas: Quotas;
  /** What the watchers will be told after the commit. */
  readonly touched: Touched;
  /** Deliveries that it may still cancel: a removed webhook may have any number, and others wait for the commit. */
  cancelable: number;
  /** The number of the last event of each team that has got one here: see `events.ts`. */
  readonly sequences: Map<string, number>;
  /** The operation has found done what it was asked for, by an earlier call: whatever it tells was told then. */
  repeated?: boolean;
}

/** Runs several reads on one state of the database: for connections that only read. */
export function snapshot<Result>({ db }: View, read: () => Result): Result {
  db.run('begin');
  try {
    return read();
  } finally {
    db.run('commit');
  }
}
