/** Opens an SQLite database for `store/copy/`. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import { makeDirectory } from '../../std/make-directory.ts';
import type { Tables } from '../copy/tables.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { takeOwnership } from './owner.ts';
import { SqliteSql } from './sql.ts';

/**
 * Opens the database and takes ownership of its data directory, so that no server can run on it meanwhile.
 *
 * @param options.make whether to create or migrate the file instead of only reading it
 */
export async function openSqliteTables(options: {
  path: string;
  log: Logger;
  make: boolean;
}): Promise<Tables> {
  const { path, log, make } = options;
  if (!make && !existsSync(path)) throw new Error(`The database ${path} does not exist`);
  makeDirectory(dirname(path));
  const ownership = takeOwnership(path);
  let db: Database;
  try {
    if (make) migrate({ path, log, now: Date.now(), own: true });
    db = new Database(path, { readOnly: !make });
  } catch (error) {
    ownership.release();
    throw error;
  }
  async function inTransaction<Result>(
    begin: string,
    use: (sql: SqliteSql) => Promise<Result>,
  ): Promise<Result> {
    db.exec(begin);
    try {
      const result = await use(new SqliteSql(db, { inTransaction: true }));
      db.exec('commit');
      return result;
    } catch (error) {
      if (db.inTransaction) db.exec('rollback');
      throw error;
    }
  }
  return {
    inUse: async () => undefined,
    read: (read) => inTransaction('begin', read),
    write: (write) => inTransaction('begin immediate', write),
    analyze: async () => {},
    close: async () => {
      db.close();
      ownership.release();
    },
  };
}
