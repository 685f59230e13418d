/** Migrates a PostgreSQL database to the newest schema: numbered .sql files, in one transaction. */

import type pg from 'pg';
import { type Logger, silentLogger } from '../../observe/log.ts';
import {
  listMigrations,
  type Migration,
  type SchemaState,
  schemaState,
  statementsOf,
} from '../migrations.ts';
import { openPool } from './connections.ts';
import { Database, inTransaction } from './database.ts';
import { isDuplicate, unusable } from './failures.ts';
import { changeShardsInTurn, isDistributed, place, placesOf, tableNames } from './placement.ts';

/** Maximum time for a statement. It is enough to rebuild a large table. */
const STATEMENT_MS = 3_600_000;
/** The oldest supported version of PostgreSQL, in the form of `server_version_num`. Older versions are not tested. */
const OLDEST_SERVER = 150_000;

/** Reads the state of the schema on a separate connection. */
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

/** Returns the schema version (0 if there are no tables) and the pending migrations. */
async function readSchema(db: Database, directory?: string): Promise<SchemaState> {
  const table = await db.get<{ there: boolean; server: number }>(
    `select to_regclass('schema_version') is not null as there, current_setting('server_version_num')::integer as server`,
  );
  refuseOldServer(table?.server ?? 0);
  return schemaState(table?.there === true ? await versionOf(db) : 0, directory);
}

/**
 * Runs the pending migrations. Any number of processes may call this at the same time. The first process takes a lock;
 * the others wait, and then find no pending migrations. Meanwhile nodes of the previous version continue to run, so a
 * migration only adds to the schema. Unused columns are dropped by a later migration. Throws an Error if the schema is
 * newer than this code.
 */
export async function migrate(input: {
  url: string;
  /** The pool that checks for pending migrations. Usually there are none, and no other connection is needed. */
  pool: pg.Pool;
  log: Logger;
  /** The directory with the .sql files (default: `../migrations/`). */
  directory?: string;
}): Promise<void> {
  const { url, log, directory } = input;
  // The check takes no lock and creates no table, so that users without the right to create tables can run the service.
  const { found, newest } = await readSchema(new Database(input.pool), directory);
  refuseNewer(found, newest);
  if (found === newest) return;
  const migrations = listMigrations('postgres', directory);
  const pool = openPool({ url, size: 1, log, answerMs: STATEMENT_MS });
  try {
    // If two processes create the same table at the same moment, PostgreSQL refuses one process, which then tries
    // again.
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
    `The database server runs PostgreSQL ${Math.floor(server / 10_000)}, but flowhook needs ` +
      `${OLDEST_SERVER / 10_000} or newer. Upgrade the server, or set another database with FLOWHOOK_DATABASE`,
  );
}

function refuseNewer(found: number, newest: number): void {
  if (found <= newest) return;
  throw new Error(
    `The database has schema version ${found}, and this flowhook knows versions up to ${newest}. ` +
      'Run the newer flowhook, or restore the backup that was made before the migration',
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
  // The version is read again, because another process may have migrated while this process waited for the lock.
  const found = await versionOf(db);
  refuseNewer(found, newest);
  const before = (await isDistributed(db)) ? await tableNames(db) : undefined;
  if (before !== undefined) await changeShardsInTurn(db);
  for (const { number, sql } of migrations) {
    if (found >= number) continue;
    // Citus sends a statement that changes a table to other nodes with everything that was sent together with it.
    for (const statement of before === undefined ? [sql] : statementsOf(sql)) await db.exec(statement);
    await db.run(
      'insert into schema_version (number, migrated_at) values ($1, (extract(epoch from clock_timestamp()) * 1000)::bigint)',
      number,
    );
  }
  // New tables of a distributed database go where its other tables are.
  if (before !== undefined) {
    const made = (await tableNames(db)).filter((name) => !before.includes(name));
    for (const table of await placesOf(db, made)) await place(db, table);
  }
  if (found < newest) log.info({ from: found, to: newest }, 'database.migrated');
}
