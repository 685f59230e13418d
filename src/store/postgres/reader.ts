/** Read-only access for worker threads, which start faster because this loads little code. */

import type pg from 'pg';
import { silentLogger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import * as records from '../operations/records.ts';
import * as versions from '../operations/versions.ts';
import type { StoreReader } from '../store.ts';
import type { View } from '../transaction.ts';
import { Database, openPool } from './database.ts';
import { asProblem } from './write.ts';

/** One for lookups while the other waits for a long page. */
const POOL_SIZE = 2;

/** Connects to a database that `openPostgres` has migrated. */
export function openPostgresReader(url: string): StoreReader {
  const pool = openPool({ url, size: POOL_SIZE, log: silentLogger });
  // None of these operations needs the time.
  const read = reading(pool, () => 0);
  return {
    records: { compare: read(records.compare), page: read(records.page), version: read(versions.version) },
    close: () => pool.end(),
  };
}

/** Turns operations that read into functions. If the database cannot be used, they throw a Problem. */
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
