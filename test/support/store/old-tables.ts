/** Makes, fills and reads the tables of an older version. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { silentLogger } from '../../../src/observe/log.ts';
import type { Driver } from '../../../src/store/migrations.ts';
import { openPool } from '../../../src/store/postgres/connections.ts';
import { migrate as migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { migrate as migrateSqlite } from '../../../src/store/sqlite/migrate.ts';
import { makeDatabase } from '../postgres.ts';
import type { Row, Rows } from './frozen-schemas.ts';

export interface OldTables {
  url: string;
  /** Settings for a service that uses the tables. */
  settings: Record<string, string>;
  /** Inserts the columns that these tables have, and returns the inserted rows. */
  insert(rows: Rows): Promise<Rows>;
  read(): Promise<Rows>;
  /** Sets the schema version without changing the tables. */
  pretend(version: number): Promise<void>;
  drop(): Promise<void>;
}

/**
 * Makes the tables in a new database: on SQLite in `data/flowhook.db` in the directory.
 *
 * @param place.migrations the directory with the .sql files up to the version
 * @param database an empty PostgreSQL database (default: a new one)
 */
export async function makeOldTables(
  driver: Driver,
  place: { directory: string; migrations: string },
  database?: { url: string; drop(): Promise<void> },
): Promise<OldTables> {
  return driver === 'sqlite' ? ofSqlite(place) : ofPostgres(place, database ?? (await makeDatabase()));
}

function ofSqlite({ directory, migrations }: { directory: string; migrations: string }): OldTables {
  const path = join(directory, 'data', 'flowhook.db');
  mkdirSync(join(directory, 'data'));
  migrateSqlite({ path, log: silentLogger, now: 0, directory: migrations });
  /** Opens the file for one use, because migrations need exclusive access. */
  function withFile<T>(use: (db: DatabaseSync) => T): T {
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
    try {
      return use(db);
    } finally {
      db.close();
    }
  }
  const tablesOf = (db: DatabaseSync) =>
    (db.prepare("select name from sqlite_schema where type = 'table'").all() as { name: string }[]).map(
      ({ name }) => name,
    );
  return {
    url: `sqlite:${path}`,
    settings: {},
    insert: async (rows) =>
      withFile((db) => {
        const there = tablesOf(db);
        const columnsOf = (table: string) =>
          (db.prepare(`select name from pragma_table_info(?)`).all(table) as { name: string }[]).map(
            ({ name }) => name,
          );
        const known = onlyKnown(rows, (table) => (there.includes(table) ? columnsOf(table) : undefined));
        for (const [table, list] of known) {
          for (const row of list) {
            const columns = Object.keys(row);
            db.prepare(
              `insert into ${table} (${columns.join()}) values (${columns.map(() => '?').join()})`,
            ).run(...(Object.values(row) as (string | number | null)[]));
          }
        }
        return known;
      }),
    read: async () =>
      withFile(
        (db) =>
          new Map(
            tablesOf(db).map((table) => [
              table,
              (db.prepare(`select * from ${table}`).all() as Row[]).map((row) => ({ ...row })),
            ]),
          ),
      ),
    pretend: async (version) => withFile((db) => db.exec(`pragma user_version = ${version}`)),
    drop: async () => {},
  };
}

async function ofPostgres(
  { migrations }: { migrations: string },
  { url, drop }: { url: string; drop(): Promise<void> },
): Promise<OldTables> {
  const pool = openPool({ url, size: 1, log: silentLogger });
  await migratePostgres({ url, pool, log: silentLogger, directory: migrations });
  await pool.end();
  async function withClient<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end();
    }
  }
  return {
    url,
    settings: { FLOWHOOK_DATABASE: url },
    insert: (rows) =>
      withClient(async (client) => {
        const columns = new Map<string, string[]>();
        const { rows: found } = await client.query(
          "select table_name as t, column_name as c from information_schema.columns where table_schema = 'public'",
        );
        for (const { t, c } of found) columns.set(t, [...(columns.get(t) ?? []), c]);
        const known = onlyKnown(rows, (table) => columns.get(table));
        // Disables foreign keys, because tables are not ordered by their references.
        await client.query('set session_replication_role = replica');
        for (const [table, list] of known) {
          const names = Object.keys(list[0] ?? {});
          await client.query(
            `insert into ${table} (${names.join()}) select ${names.join()} from json_populate_recordset(null::public.${table}, $1)`,
            [JSON.stringify(list)],
          );
        }
        return known;
      }),
    read: () =>
      withClient(async (client) => {
        const { rows: names } = await client.query(
          "select tablename as name from pg_tables where schemaname = 'public' and tablename <> 'schema_version'",
        );
        const read: Rows = new Map();
        for (const { name } of names) {
          const { rows } = await client.query(`select to_json(t) as row from ${name} t`);
          read.set(
            name,
            rows.map(({ row }) => row),
          );
        }
        return read;
      }),
    pretend: (version) =>
      withClient(async (client) => {
        await client.query('insert into schema_version (number, migrated_at) values ($1, 0)', [version]);
      }),
    drop,
  };
}

/** @param columnsOf returns the columns of a table; undefined if it does not exist */
function onlyKnown(rows: Rows, columnsOf: (table: string) => string[] | undefined): Rows {
  const known: Rows = new Map();
  for (const [table, list] of rows) {
    const columns = columnsOf(table);
    if (columns === undefined) continue;
    known.set(
      table,
      list.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => columns.includes(name)))),
    );
  }
  return known;
}
