/** Read-only access for worker threads, which start faster because this loads little code. */

import type pg from 'pg';
import { silentLogger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { readerOperations } from '../reader-operations.ts';
import type { StoreReader } from '../store.ts';
import type { View } from '../transaction.ts';
import { openPool } from './connections.ts';
import { Database } from './database.ts';
import { asProblem } from './write.ts';

/** With two connections, a lookup does not wait while a long page is read. */
const POOL_SIZE = 2;

/** Connects to a database that `openPostgres` has migrated. */
export function openPostgresReader(url: string): StoreReader {
  const pool = openPool({ url, size: POOL_SIZE, log: silentLogger, serves: true });
  // The clock returns 0, because none of these operations uses the time.
  const read = reading(pool, () => 0);
  return { ...readerOperations(read), close: () => pool.end() };
}

/** Turns read operations into functions. The functions throw a Problem if the database cannot be used. */
export function reading(pool: pg.Pool, clock: Clock) {
  return <Result, Input = void>(operation: (view: View, input: Input) => Promise<Result>, prepares = false) =>
    async (input: Input): Promise<Result> => {
      try {
        return await operation({ db: new Database(pool, { reads: true, prepares }), now: clock() }, input);
      } catch (error) {
        throw asProblem(error);
      }
    };
}
