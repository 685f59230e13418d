/** Migrates a PostgreSQL database to the newest schema: numbered .sql files, in one transaction. */

import type pg from 'pg';
import { type Logger, silentLogger } from '../../observe/log.ts';
import { listMigrations, type Migration, type SchemaState, schemaState } from '../migrations.ts';
import { Database, inTransaction, openPool } from './database.ts';
import { isDuplicate, unusable } from './failures.ts';

/** Enough for statements that rebuild a large table. */
const STATEMENT_MS = 3_600_000;
/** In the form of `server_version_num`. Older versions are not tested. */
const OLDEST_SERVER = 150_000;

/** Reads the state of the schema on a connection of its own. */
export async function lookAtSchema(url: string): Promise<SchemaState> {
  const pool = openPool({ url, size: 1, log: silentLogger });
  try {
    return await readSchema(new Database(pool));
  } catch (error) {
    throw unusable(error);
  } finally {
    await pool.end();
  }
}

/** The schema version, 0 if there are no tables, and the pending migrations. */
async function readSchema(db: Database, directory?: string): Promise<SchemaState> {
  const table = await db.get<{ there: boolean; server: number }>(
    `select to_regclass('schema_version') is not null as there, current_setting('server_version_num')::integer as server`,
  );
  refuseOldServer(table?.server ?? 0);
  return schemaState('postgres', table?.there === true ? await versionOf(db) : 0, directory);
}

/**
 * Runs the pending migrations. Any number of processes may call this at the same time: the first one takes a lock; the
 * others wait, and find nothing left to do. Nodes of the previous version continue to run meanwhile, so a migration only
 * adds; unused columns are dropped by a later one. Throws an Error when the schema is newer than this code.
 */
export async function migrate(input: {
  url: string;
  /** Used to check whether any migration is pending; usually none is. */
  pool: pg.Pool;
  log: Logger;
  /** The directory with the .sql files (default: `../migrations/`). */
  directory?: string;
}): Promise<void> {
  const { url, log, directory } = input;
  // Without a lock, and without creating a table: users without the right to create tables can still run the service.
  const { found, newest } = await readSchema(new Database(input.pool), directory);
  refuseNewer(found, newest);
  if (found === newest) return;
  const migrations = listMigrations('postgres', directory);
  const pool = openPool({ url, size: 1, log, answerMs: STATEMENT_MS });
  try {
    // When two processes create the table at the same moment, PostgreSQL refuses one of them, which then tries again.
    for (;;) {
      try {
        await inTransaction(pool, (db) => run(db, { migrations, newest, log }), {
          statementMs: STATEMENT_MS,
          lockMs: 0,
        });
        return;
      } catch (error) {
        if (!isDuplicate(error)) throw error;
      }
    }
  } finally {
    await pool.end();
  }
}

async function versionOf(db: Database): Promise<number> {
  const row = await db.get<{ found: number }>('select coalesce(max(number), 0) as found from schema_version');
  return row?.found ?? 0;
}

function refuseOldServer(server: number): void {
  if (server >= OLDEST_SERVER) return;
  throw new Error(
    `The database runs on PostgreSQL ${Math.floor(server / 10_000)}, and flowhook needs ` +
      `${OLDEST_SERVER / 10_000} or newer. Upgrade it, or set another database with FLOWHOOK_DATABASE`,
  );
}

function refuseNewer(found: number, newest: number): void {
  if (found <= newest) return;
  throw new Error(
    `The database has schema version ${found}, and this flowhook knows versions up to ${newest}. ` +
      'Run the newer flowhook, or restore the backup that was made before it migrated',
  );
}

async function run(
  db: Database,
  { migrations, newest, log }: { migrations: readonly Migration[]; newest: number; log: Logger },
): Promise<void> {
  await db.exec(
    'create table if not exists schema_version (number integer primary key, migrated_at bigint not null)',
  );
  await db.exec('lock table schema_version in exclusive mode');
  // Another process may have run them while this one waited for the lock.
  const found = await versionOf(db);
  refuseNewer(found, newest);
  for (const { number, sql } of migrations) {
    if (found >= number) continue;
    await db.exec(sql);
    await db.run(
      'insert into schema_version (number, migrated_at) values ($1, (extract(epoch from clock_timestamp()) * 1000)::bigint)',
      number,
    );
  }
  if (found < newest) log.info({ from: found, to: newest }, 'database.migrated');
}
