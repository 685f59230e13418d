/** A PostgreSQL database as a copy sees it. */
import type { Logger } from '../../observe/log.ts';
import {
  type Cell,
  type Column,
  MARKER,
  markerMoved,
  PAGE_ROWS,
  type Page,
  type Place,
  rowsOfPage,
  TABLES,
  type Table,
  type TableReader,
  type Tables,
} from '../copy/tables.ts';
import { Database, inTransaction, openPool } from './database.ts';
import { migrate } from './migrate.ts';
import { unusable } from './unusable.ts';

/** In ms. Counting the rows of a large table takes longer than a statement of the service may. */
const STATEMENT_MS = 3_600_000;

/** @param options.make whether to create the tables when there are none */
export async function openPostgresTables(options: {
  url: string;
  log: Logger;
  make: boolean;
}): Promise<Tables> {
  const { url, log, make } = options;
  const pool = openPool({ url, size: 2, log, answerMs: STATEMENT_MS });
  try {
    if (make) await migrate({ url, pool, log });
    await new Database(pool).get('select 1 from instance limit 1');
  } catch (error) {
    await pool.end();
    throw unusable(error);
  }
  return {
    columns: (table) => columns(new Database(pool), table),
    inUse: () => inTransaction(pool, inUse),
    snapshot: (read) =>
      inTransaction(
        pool,
        async (db) => {
          // It may wait for the other database for long. Tables are read by their primary keys, whatever the planner
          // believes of tables that were filled a moment ago.
          await db.exec(
            'set local idle_in_transaction_session_timeout = 0; set local enable_seqscan = off; ' +
              'set local enable_bitmapscan = off; set local enable_sort = off',
          );
          return read(reader(db));
        },
        { isolation: 'repeatable read read only', statementMs: STATEMENT_MS },
      ),
    marker: async () =>
      (await new Database(pool).get<{ value: string }>('select value from instance where name = $1', MARKER))
        ?.value,
    write: (step) => inTransaction(pool, (db) => write(db, step), { statementMs: STATEMENT_MS }),
    analyze: () => new Database(pool).exec(`analyze ${TABLES.map(({ name }) => name).join(', ')}`),
    close: () => pool.end(),
  };
}

async function columns(db: Database, { name }: Table): Promise<Column[]> {
  const found = await db.all<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    name,
  );
  return found
    .map((column) => ({ name: column.name, isNumber: column.type !== 'text' }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Nodes are known by their leases, and idle ones by their connections, unless a pooler is in between. Connections of
 * this process are younger than 2 s.
 */
async function inUse(db: Database): Promise<string | undefined> {
  const found = await db.get<{ leases: number; connections: number }>(
    `with present as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as at)
     select
       (select count(*) from job, present where state = 'running' and lease_until > at)
         + (select count(*) from lane, present where node_id is not null and lease_until > at)
         + (select count(*) from chore, present where lease_until > at) as leases,
       (select count(*) from pg_stat_activity
        where datname = current_database() and application_name = 'flowhook' and backend_start <
          (select backend_start - interval '2 seconds' from pg_stat_activity where pid = pg_backend_pid()))
         as connections`,
  );
  if (found === undefined || found.leases + found.connections === 0) return undefined;
  return (
    `Nodes use the database that is to be copied (${found.leases} leases, ${found.connections} connections). Stop ` +
    'them, wait half a minute until their leases are over, and copy again; --force copies what is there now, and what ' +
    'nodes write from now on is not in the copy'
  );
}

function reader(db: Database): TableReader {
  return {
    count: async ({ name, except = 'false' }) =>
      (await db.get<{ rows: number }>(`select count(*) as rows from ${name} where not (${except})`))?.rows ??
      0,
    page: (table, wanted, after) => page(db, table, wanted, after),
  };
}

async function page(
  db: Database,
  table: Table,
  wanted: readonly Column[],
  after: Place | null,
): Promise<Page> {
  const { name, key, except = 'false', long = [] } = table;
  const casts = key.map((column, place) => `$${place + 2}::${isNumber(wanted, column) ? 'bigint' : 'text'}`);
  const beyond = after === null ? '' : `and (${key.join(', ')}) > (${casts.join(', ')})`;
  const rest = `from ${name} where not (${except}) ${beyond} order by ${key.join(', ')} limit $1::bigint`;
  const values = after ?? [];
  let limit = PAGE_ROWS;
  if (long.length > 0) {
    const bytes = long.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');
    const found = await db.all<{ bytes: number }>(`select ${bytes} as bytes ${rest}`, PAGE_ROWS, ...values);
    limit = rowsOfPage(found.map((row) => row.bytes));
    if (limit === 0) return { rows: [], next: null };
  }
  const list = wanted.map((column) => READ_AS[`${name}.${column.name}`] ?? column.name).join(', ');
  const found = await db.all<Record<string, Cell>>(`select ${list} ${rest}`, limit, ...values);
  const last = found.at(-1);
  return {
    rows: found.map((row) => wanted.map((column) => row[column.name] ?? null)),
    next:
      last === undefined || (long.length === 0 && found.length < limit)
        ? null
        : key.map((column) => last[column] ?? null),
  };
}

/** Columns that are read differently: on SQLite a team's row counts its events, here the newest event has the number. */
const READ_AS: Readonly<Record<string, string>> = {
  'team.last_sequence': `
    greatest(last_sequence,
      (select sequence from event where event.team_id = team.id order by sequence desc limit 1)) as last_sequence`,
};

function isNumber(wanted: readonly Column[], name: string): boolean {
  return wanted.some((column) => column.name === name && column.isNumber);
}

async function write(db: Database, { insert, marker }: Parameters<Tables['write']>[0]): Promise<void> {
  if (insert !== undefined) {
    const { table, rows } = insert;
    const names = insert.columns.map(({ name }) => name).join(', ');
    const arrays = insert.columns.map(
      (column, place) => `$${place + 1}::${column.isNumber ? 'bigint' : 'text'}[]`,
    );
    await db.run(
      `insert into ${table.name} (${names}) select * from unnest(${arrays.join(', ')})`,
      ...insert.columns.map((_, place) => rows.map((row) => row[place] ?? null)),
    );
  }
  if ((await setMarker(db, marker)) !== 1) throw markerMoved();
}

function setMarker(
  db: Database,
  { was, becomes }: Parameters<Tables['write']>[0]['marker'],
): Promise<number> {
  if (was === undefined) {
    const sql = 'insert into instance (name, value) values ($1, $2) on conflict do nothing';
    return db.run(sql, MARKER, becomes ?? '');
  }
  if (becomes === undefined) {
    return db.run('delete from instance where name = $1 and value = $2', MARKER, was);
  }
  return db.run('update instance set value = $2 where name = $1 and value = $3', MARKER, becomes, was);
}
