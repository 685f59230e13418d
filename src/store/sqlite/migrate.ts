/** Migrates a database file to the newest schema: numbered .sql files, in one transaction. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import {
  listMigrations,
  type Migration,
  newestSchema,
  type SchemaState,
  schemaState,
} from '../migrations.ts';
import { backUpNow } from './backup.ts';
import { Database, isBusy, schemaVersion, withDatabase } from './database.ts';
import { type Ownership, takeOwnership } from './owner.ts';

const WAL_MS = 5_000;

/**
 * Runs the pending migrations. An existing database is first backed up into `backups/` beside it. Several processes may
 * call this at the same time, because migrations run under the write lock. Throws an Error if the schema is newer than
 * this code, or if it is older and a server is running on the database.
 */
export function migrate(input: {
  path: string;
  log: Logger;
  now: number;
  /**
   * Whether this process owns the data directory. If not, it takes ownership during the migration, and no server may be
   * running.
   */
  own?: boolean;
  /** The directory with the .sql files (default: `../migrations/`). */
  directory?: string;
}): void {
  const newest = newestSchema(input.directory);
  const db = new Database(input.path);
  let ownership: Ownership | undefined;
  try {
    useWal(db);
    // Foreign keys are off, because migrations may rebuild tables that other tables refer to.
    db.exec('pragma foreign_keys = off');
    const found = schemaVersion(db);
    if (found > newest) {
      throw new Error(
        `The database ${input.path} has schema version ${found}, and this flowhook knows versions up to ${newest}. ` +
          'Run the newer flowhook again, or restore the backup that was made before the migration. ' +
          'To list backups, run `flowhook backup list`',
      );
    }
    if (found === newest) return;
    if (found > 0 && input.own !== true) ownership = takeOwnership(input.path);
    if (found > 0) backUp(input);
    run(db, listMigrations('sqlite', input.directory));
    input.log.info({ path: input.path, from: found, to: newest }, 'database.migrated');
  } finally {
    ownership?.release();
    db.close();
  }
}

/** Returns the schema version of a file, and its pending migrations. Changes nothing and creates no file. */
export function lookAtSchema(path: string): SchemaState {
  return schemaState(existsSync(path) ? withDatabase(path, { readOnly: true }, schemaVersion) : 0);
}

/**
 * Turns WAL mode on. Tries again when two processes do this at the same moment, because SQLite does not wait in this
 * case.
 */
function useWal(db: Database): void {
  let giveUpAt: number | undefined;
  for (;;) {
    try {
      db.exec('pragma journal_mode = wal');
      return;
    } catch (error) {
      giveUpAt ??= performance.now() + WAL_MS;
      if (!isBusy(error) || performance.now() > giveUpAt) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/**
 * Runs either all migrations or none. If another process opens a new database meanwhile, it must not see an old
 * version.
 */
function run(db: Database, migrations: readonly Migration[]): void {
  db.exec('begin immediate');
  try {
    // The version is read under the lock, because another process may have migrated while this process waited.
    const found = schemaVersion(db);
    for (const { number, sql } of migrations) {
      if (found >= number) continue;
      db.exec(sql);
      db.exec(`pragma user_version = ${number}`);
    }
    db.exec('commit');
  } catch (error) {
    if (db.inTransaction) db.exec('rollback');
    throw error;
  }
}

function backUp({ path, now, log }: { path: string; now: number; log: Logger }): void {
  const directory = join(dirname(path), 'backups');
  const { file, mistakes } = backUpNow({ path, directory, now, origin: 'migration' });
  if (mistakes.length > 0) log.warn({ path, mistakes }, 'database.damaged');
  log.info({ path, backup: file }, 'database.backed_up');
}
