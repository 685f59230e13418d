/**
 * Reads and writes the tables of an SQLite database for `store/copy/`, in PostgreSQL's shape. The one difference: on
 * SQLite a workflow has a number, assigned anew by the database it is copied into, and `record` refers to that.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
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
  type Table,
  type TableReader,
  type Tables,
} from '../copy/tables.ts';
import { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { takeOwnership } from './owner.ts';

/** How to read and write a table in the shape that it has on PostgreSQL. */
interface Shape {
  from: string;
  key: readonly string[];
  /** The SQL expression for a column here. */
  expression: (column: string) => string;
  /** `insert into` with a `?` for each column. */
  insert: (columns: readonly string[]) => string;
}

const RECORD_KEY = ['record.workflow', 'record.seq', 'record.added_in'];

function shapeOf({ name, key }: Table): Shape {
  const marks = (columns: readonly string[]) => columns.map(() => '?').join(', ');
  switch (name) {
    case 'workflow':
      return {
        from: 'workflow',
        key,
        expression: (column) => column,
        insert: (columns) =>
          `insert into workflow (number, ${columns.join(', ')})
           values ((select coalesce(max(number), 0) + 1 from workflow), ${marks(columns)})`,
      };
    case 'record':
      return {
        // `cross` keeps the order of the two: records are walked along their key.
        from: 'record cross join workflow on workflow.number = record.workflow',
        key: RECORD_KEY,
        expression: (column) =>
          ({ team_id: 'workflow.team_id', workflow_id: 'workflow.id' })[column] ?? `record.${column}`,
        // The columns come in order of their names: ?N is the place of one.
        insert: (columns) => {
          const place = (column: string) => `?${columns.indexOf(column) + 1}`;
          const own = columns.filter((column) => column !== 'team_id' && column !== 'workflow_id');
          return `insert into record (workflow, ${own.join(', ')})
            values ((select number from workflow where team_id = ${place('team_id')} and id = ${place('workflow_id')}),
                    ${own.map(place).join(', ')})`;
        },
      };
    default:
      return {
        from: name,
        key,
        expression: (column) => column,
        insert: (columns) => `insert into ${name} (${columns.join(', ')}) values (${marks(columns)})`,
      };
  }
}

/**
 * Opens the database and owns its data directory, so that no server runs on it meanwhile.
 *
 * @param options.make whether to create or migrate the file, rather than only read it
 */
export async function openSqliteTables(options: {
  path: string;
  log: Logger;
  make: boolean;
}): Promise<Tables> {
  const { path, log, make } = options;
  if (!make && !existsSync(path)) throw new Error(`There is no database ${path}`);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const ownership = takeOwnership(path);
  let db: Database;
  try {
    if (make) migrate({ path, log, now: Date.now(), own: true });
    db = new Database(path, { readOnly: !make });
  } catch (error) {
    ownership.release();
    throw error;
  }
  return {
    columns: async (table) => columns(db, table),
    inUse: async () => undefined,
    async snapshot(read) {
      db.run('begin');
      try {
        return await read(reader(db));
      } finally {
        db.run('commit');
      }
    },
    marker: async () => db.get<{ value: string }>('select value from instance where name = ?', MARKER)?.value,
    write: async (step) => write(db, step),
    analyze: async () => {},
    close: async () => {
      db.close();
      ownership.release();
    },
  };
}

function columns(db: Database, { name }: Table): Column[] {
  const found = db
    .all<{ name: string; type: string }>('select name, type from pragma_table_info(?)', name)
    .map((column) => ({ name: column.name, isNumber: column.type.toLowerCase() === 'integer' }))
    .filter((column) => !(name === 'workflow' && column.name === 'number'))
    .filter((column) => !(name === 'record' && column.name === 'workflow'));
  if (name === 'record') {
    found.push({ name: 'team_id', isNumber: false }, { name: 'workflow_id', isNumber: false });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function reader(db: Database): TableReader {
  return {
    count: async ({ name, except = 'false' }) =>
      db.get<{ rows: number }>(`select count(*) as rows from ${name} where not (${except})`)?.rows ?? 0,
    page: async (table, wanted, after) => page(db, table, wanted, after),
  };
}

function page(db: Database, table: Table, wanted: readonly Column[], after: Place | null): Page {
  const { from, key, expression } = shapeOf(table);
  const { except = 'false', long = [] } = table;
  const beyond = after === null ? '' : `and (${key.join(', ')}) > (${key.map(() => '?').join(', ')})`;
  const rest = `from ${from} where not (${except}) ${beyond} order by ${key.join(', ')} limit ?`;
  const values = after ?? [];
  let limit = PAGE_ROWS;
  if (long.length > 0) {
    const bytes = long.map((column) => `coalesce(octet_length(${expression(column)}), 0)`).join(' + ');
    const found = db.all<{ bytes: number }>(`select ${bytes} as bytes ${rest}`, ...values, PAGE_ROWS);
    limit = rowsOfPage(found.map((row) => row.bytes));
    if (limit === 0) return { rows: [], next: null };
  }
  const list = [
    ...wanted.map(({ name }, place) => `${expression(name)} as c${place}`),
    ...key.map((name, place) => `${name} as k${place}`),
  ];
  const found = db.all<Record<string, Cell>>(`select ${list.join(', ')} ${rest}`, ...values, limit);
  const last = found.at(-1);
  return {
    rows: found.map((row) => wanted.map((_, place) => row[`c${place}`] ?? null)),
    next:
      last === undefined || (long.length === 0 && found.length < limit)
        ? null
        : key.map((_, place) => last[`k${place}`] ?? null),
  };
}

function write(db: Database, { insert, marker }: Parameters<Tables['write']>[0]): void {
  db.exec('begin immediate');
  try {
    if (insert !== undefined) {
      const sql = shapeOf(insert.table).insert(insert.columns.map(({ name }) => name));
      for (const row of insert.rows) db.run(sql, ...row);
    }
    if (setMarker(db, marker) !== 1) throw markerMoved();
    db.exec('commit');
  } catch (error) {
    if (db.inTransaction) db.exec('rollback');
    throw error;
  }
}

function setMarker(db: Database, { was, becomes }: Parameters<Tables['write']>[0]['marker']): number {
  if (was === undefined) {
    const sql = 'insert into instance (name, value) values (?, ?) on conflict do nothing';
    return db.run(sql, MARKER, becomes ?? '');
  }
  if (becomes === undefined) return db.run('delete from instance where name = ? and value = ?', MARKER, was);
  return db.run('update instance set value = ? where name = ? and value = ?', becomes, MARKER, was);
}
