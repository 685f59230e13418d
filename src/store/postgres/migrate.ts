/** Brings a PostgreSQL database to the newest schema: numbered .sql files, in one transaction. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import type { Logger } from '../../observe/log.ts';
import { type Database, inTransaction, isDuplicate } from './database.ts';

const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));
/** Of a statement that rebuilds a large table. */
const STATEMENT_MS = 3_600_000;

/**
 * Runs the migrations that the database has not seen. Any number of processes may do this at the same time: the
 * first holds a lock, the others wait and find that nothing is left. Throws an Error with a sentence when the
 * schema is newer than this code.
 */
export async function migrate(pool: pg.Pool, log: Logger, directory = MIGRATIONS): Promise<void> {
  const migrations = listMigrations(directory);
  const newest = migrations.at(-1)?.number ?? 0;
  // Two that make the table at the same moment: PostgreSQL refuses one of them, and then it is there.
  for (;;) {
    try {
      await inTransaction(pool, (db) => run(db, { migrations, newest, log }), { statementMs: STATEMENT_MS });
      return;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
  }
}

interface Migration {
  number: number;
  sql: string;
}

function listMigrations(directory: string): Migration[] {
  return readdirSync(directory)
    .filter((name) => /^\d{4}_.*\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 4)), sql: readFileSync(join(directory, name), 'utf8') }));
}

async function run(
  db: Database,
  { migrations, newest, log }: { migrations: readonly Migration[]; newest: number; log: Logger },
): Promise<void> {
  await db.exec(
    'create table if not exists schema_version (number integer primary key, migrated_at bigint not null)',
  );
  await db.exec('lock table schema_version in exclusive mode');
  const { found } = (await db.get<{ found: number }>(
    'select coalesce(max(number), 0) as found from schema_version',
  )) as { found: number };
  if (found > newest) {
    throw new Error(
      `The database has schema version ${found}, and this flowhook knows versions up to ${newest}. ` +
        'Run the newer flowhook, or restore the backup that was made before it migrated',
    );
  }
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
