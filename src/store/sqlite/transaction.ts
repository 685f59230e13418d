/** The context that the functions of this driver receive: a connection, the time, and what the commit will touch. */
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
  /** The service's external URL, for the bodies of events. */
  readonly publicUrl: string;
  /** For teams that have no quotas of their own. */
  readonly quotas: Quotas;
  /** Reported to watchers after the commit. */
  readonly touched: Touched;
  /** How many deliveries it may still cancel: a removed webhook may have any number, and other writes wait. */
  cancelsLeft: number;
  /** The last sequence number of each team that got an event in this batch: see `events.ts`. */
  readonly sequences: Map<string, number>;
  /** Set when the operation changed nothing because an earlier call had done it: then it leaves no audit line. */
  repeated?: boolean;
}

/** Runs several reads on one snapshot of the database: for read-only connections. */
export function snapshot<Result>({ db }: View, read: () => Result): Result {
  db.run('begin');
  try {
    return read();
  } finally {
    db.run('commit');
  }
}
