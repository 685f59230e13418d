/**
 * Reads and writes the rows of a copy, in the form that they have on PostgreSQL. On SQLite, `record` refers to a workflow
 * by a number, which the target database assigns again, and `event` says whether an index contains it (default: yes).
 */
import { type ColumnType, insertAll, type Sql } from '../sql.ts';
import { TABLES, type Table } from './tables.ts';

/** A value of one column in one row. */
export type Cell = string | number | null;

/** The columns of a table in alphabetical order, which is also the order of the cells of a row. */
export type Columns = Readonly<Record<string, ColumnType>>;

/** By the name of the table. */
export type ColumnsOf = ReadonlyMap<string, Columns>;

/** The maximum size of a page, in rows, and in bytes of its long columns. A page has at least one row. */
const PAGE_ROWS = 1_000;
const PAGE_BYTES = 4_194_304;

/** A cursor: where a page ended. Only valid for the database that it was read from. */
export type Place = readonly Cell[];

export interface Page {
  rows: Cell[][];
  /** The cursor for the next page; null after the last one. */
  next: Place | null;
}

/**
 * The subquery that replaces the table `record` on SQLite, and the order of its rows. `cross join` makes SQLite read
 * the records in the order of their key.
 */
const NUMBERED = {
  from: `(select workflow.team_id, workflow.id as workflow_id, record.*
          from record cross join workflow on workflow.number = record.workflow) as record`,
  key: ['workflow', 'seq', 'added_in'],
};

function shapeOf(db: Sql, { name, key }: Table): { from: string; key: readonly string[] } {
  const plain = { from: name, key };
  return name === 'record' ? db.pick({ sqlite: NUMBERED, postgres: plain }) : plain;
}

const COLUMNS = {
  sqlite: `
    select name, lower(type) as type from pragma_table_info($1)
    where $1 || '.' || name not in ('workflow.number', 'record.workflow', 'event.indexed')
    union all select 'team_id', 'text' where $1 = 'record'
    union all select 'workflow_id', 'text' where $1 = 'record'
    order by name`,
  postgres: `
    select attname as name, format_type(atttypid, null) as type from pg_attribute
    where attrelid = to_regclass($1) and attnum > 0 and not attisdropped
    order by attname`,
};

/** The columns of all tables, each with its type: number or text. */
export async function readColumns(db: Sql): Promise<ColumnsOf> {
  const all = new Map<string, Columns>();
  for (const { name: table } of TABLES) {
    const found = await db.all<{ name: string; type: string }>(COLUMNS, table);
    const columns = found.map(({ name, type }) => [name, type === 'text' ? 'text' : 'bigint'] as const);
    all.set(table, Object.fromEntries(columns));
  }
  return all;
}

/** The number of rows in each table. */
export async function countRows(db: Sql): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const { name, except = 'false' } of TABLES) {
    const row = await db.get<{ rows: number }>(`select count(*) as rows from ${name} where not (${except})`);
    counts.set(name, row?.rows ?? 0);
  }
  return counts;
}

export async function readPage(db: Sql, table: Table, columns: Columns, after: Place | null): Promise<Page> {
  const { from, key } = shapeOf(db, table);
  const { except = 'false', long = [] } = table;
  const places = key.map((_, place) => `$${place + 2}`).join(', ');
  const beyond = after === null ? '' : `and (${key.join(', ')}) > (${places})`;
  const rest = `from ${from} where not (${except}) ${beyond} order by ${key.join(', ')} limit $1`;
  let limit = PAGE_ROWS;
  if (long.length > 0) {
    const bytes = long.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');
    const found = await db.all<{ bytes: number }>(
      `select ${bytes} as bytes ${rest}`,
      PAGE_ROWS,
      ...(after ?? []),
    );
    limit = rowsOfPage(found.map((row) => row.bytes));
    if (limit === 0) return { rows: [], next: null };
  }
  const names = Object.keys(columns);
  const list = [...new Set([...names, ...key])].join(', ');
  const found = await db.all<Record<string, Cell>>(`select ${list} ${rest}`, limit, ...(after ?? []));
  const last = long.length === 0 && found.length < limit ? undefined : found.at(-1);
  return {
    rows: found.map((row) => cellsOf(row, names)),
    next: last === undefined ? null : cellsOf(last, key),
  };
}

function cellsOf(row: Readonly<Record<string, Cell>>, columns: readonly string[]): Cell[] {
  return columns.map((column) => row[column] ?? null);
}

/**
 * Returns how many of the next rows make a page, given the bytes of each row. At least one, unless there are no rows.
 */
function rowsOfPage(bytes: readonly number[]): number {
  let sum = 0;
  for (const [place, own] of bytes.entries()) {
    sum += own;
    if (sum > PAGE_BYTES) return Math.max(1, place);
  }
  return bytes.length;
}

/** Inserts rows: on PostgreSQL, the rows of a page with one statement. */
export async function insertRows(
  db: Sql,
  { name }: Table,
  columns: Columns,
  rows: readonly Cell[][],
): Promise<void> {
  const sql = db.pick({ sqlite: numbering(name, Object.keys(columns)), postgres: undefined });
  if (sql === undefined) return insertAll(db, name, columns, rows);
  for (const row of rows) await db.run(sql, ...row);
}

/** SQLite's statement for a row that contains the number of a workflow; undefined for other tables. */
function numbering(table: string, columns: readonly string[]): string | undefined {
  const place = (column: string) => `$${columns.indexOf(column) + 1}`;
  switch (table) {
    case 'workflow':
      return `insert into workflow (number, ${columns.join(', ')})
        values ((select coalesce(max(number), 0) + 1 from workflow), ${columns.map(place).join(', ')})`;
    case 'record': {
      const own = columns.filter((column) => column !== 'team_id' && column !== 'workflow_id');
      return `insert into record (workflow, ${own.join(', ')})
        values ((select number from workflow where team_id = ${place('team_id')} and id = ${place('workflow_id')}),
                ${own.map(place).join(', ')})`;
    }
    default:
      return undefined;
  }
}
