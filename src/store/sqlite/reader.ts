/** Read-only access to a database for worker threads, which start faster because this loads little code. */

import { Problem } from '../../model/error.ts';
import type { Clock } from '../../std/clock.ts';
import { readerOperations } from '../reader-operations.ts';
import type { StoreReader } from '../store.ts';
import type { View } from '../transaction.ts';
import { Database, isOutside } from './database.ts';
import { ReadingSql } from './sql.ts';

/** Opens a file that `openSqlite` has created and migrated. */
export function openSqliteReader(path: string, clock: Clock): StoreReader {
  const db = new Database(path, { readOnly: true });
  const read = reading(db, clock, () => undefined);
  return { ...readerOperations(read), close: async () => db.close() };
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
