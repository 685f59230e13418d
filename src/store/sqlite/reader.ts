/** Read-only access to a database for worker threads, which start faster because this loads little code. */

import { Problem } from '../../model/error.ts';
import type { Clock } from '../../std/clock.ts';
import * as profiles from '../operations/quality/profiles.ts';
import * as quarantine from '../operations/quarantine/staged.ts';
import * as records from '../operations/records.ts';
import * as decisions from '../operations/rules/decisions.ts';
import { forPeople } from '../operations/rules/for-people.ts';
import * as versions from '../operations/versions.ts';
import type { StoreReader } from '../store.ts';
import type { View } from '../transaction.ts';
import { Database, isOutside } from './database.ts';
import { ReadingSql } from './sql.ts';

/** Opens a file that `openSqlite` has created and migrated. */
export function openSqliteReader(path: string, clock: Clock): StoreReader {
  const db = new Database(path, { readOnly: true });
  const read = reading(db, clock, () => undefined);
  return {
    records: {
      compare: read(records.compare),
      page: read(records.page),
      version: read(versions.version),
      changes: read(records.changes),
    },
    quarantine: { keys: read(quarantine.keys) },
    profiles: { earlier: read(profiles.earlier) },
    decisions: {
      pending: read(decisions.pending),
      quiet: read(decisions.quiet),
      ended: read(decisions.ended),
      forPeople: read(forPeople),
      digest: read(decisions.digest),
      endedDigest: read(decisions.endedDigest),
    },
    close: async () => db.close(),
  };
}

/**
 * Turns read operations into functions on a connection. The functions throw a Problem if the database cannot be used.
 *
 * @param mayRead throws the error for reads that are refused
 */
export function reading(db: Database, clock: Clock, mayRead: () => void) {
  const sql = new ReadingSql(db);
  return <Result, Input = void>(operation: (view: View, input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      mayRead();
      try {
        return await operation({ db: sql, now: clock() }, input);
      } catch (error) {
        throw isOutside(error) ? new Problem('database_unavailable', { cause: error }) : error;
      }
    };
}
