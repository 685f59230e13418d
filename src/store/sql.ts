/**
 * What every operation is written against: a few ways to run a statement, the same on both databases.
 *
 * Statements are written once, as PostgreSQL reads them, with each value in its place: db.get`select … where id = ${id}`.
 * Where the text is a constant, or a value occurs often, it has `$1` for the values that follow it. `sqlite/database.ts`
 * says how SQLite reads them; where the two need different ones, both stand beside each other: `{ sqlite, postgres }`.
 */

/** A value for a `$n`. SQLite stores true as 1 and gets a list as JSON. */
export type Value = string | number | boolean | null | Uint8Array | readonly (string | number | null)[];

/** What differs between the databases. */
export interface Either<Sqlite, Postgres = Sqlite> {
  readonly sqlite: Sqlite;
  readonly postgres: Postgres;
}

/** A statement for both databases, or one for each; or a template whose values are sent as such, never as text. */
export type Statement = string | Either<string> | TemplateStringsArray;

/** A part of a statement that stands in a template as it is. */
export class Part {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** The statement for one database, with `$n` for its values. */
export function textOf(
  statement: Statement,
  given: readonly (Value | Part)[],
  database: 'sqlite' | 'postgres',
): string {
  if (typeof statement === 'string') return statement;
  if (!('raw' in statement)) return statement[database];
  const known = TEMPLATES.get(statement);
  if (known?.parts.every((part, at) => part === partOf(given[at]))) return known.text;
  const parts = given.map(partOf);
  let count = 0;
  const placed = parts.map((part) => {
    if (part === undefined) count += 1;
    return part ?? `$${count}`;
  });
  const text = statement.reduce((before, next, at) => `${before}${placed[at - 1]}${next}`);
  TEMPLATES.set(statement, { parts, text });
  return text;
}

const partOf = (one: Value | Part | undefined) => (one instanceof Part ? one : undefined);

/** What is sent along with the text. */
export function valuesOf(given: readonly (Value | Part)[]): readonly Value[] {
  return given.some(partOf)
    ? given.filter((one): one is Value => !(one instanceof Part))
    : (given as Value[]);
}

/** The texts made of templates, with the parts that stood in them. */
const TEMPLATES = new WeakMap<TemplateStringsArray, { parts: readonly (Part | undefined)[]; text: string }>();

/** Picks from what differs. */
export type Pick = <Sqlite, Postgres>(either: Either<Sqlite, Postgres>) => Sqlite | Postgres;

/** A statement of which some parts differ: `both((pick) => \`select … ${pick({ sqlite: '…', postgres: '…' })} …\`)`. */
export function both(text: (pick: Pick) => string): Either<string> {
  return { sqlite: text((either) => either.sqlite), postgres: text((either) => either.postgres) };
}

export interface Sql {
  /** The first row, or undefined. */
  get<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row | undefined>;
  /** Every row; the statement bounds how many. */
  all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]>;
  /** Runs a statement; returns how many rows it changed. */
  run(sql: Statement, ...values: (Value | Part)[]): Promise<number>;
  /** Locks rows until the commit, by `select 1 … for …`. Nothing to do on SQLite, which has one writer. */
  lock(sql: Statement, ...values: Value[]): Promise<void>;
  /** The one for this database: a part of a statement, or anything else. */
  pick<Sqlite, Postgres>(either: Either<Sqlite, Postgres>): Sqlite | Postgres;
  /** Runs several reads on one state of the database; not in a transaction that writes. */
  snapshot<Result>(read: (db: Sql) => Promise<Result>): Promise<Result>;
}

/** The type of a column, by the name that PostgreSQL has for it. */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'boolean';

/**
 * Inserts rows by one statement on PostgreSQL, and by one prepared statement for each row on SQLite, which is the
 * fastest there.
 *
 * @param columns the type of each column, in the order of the values of a row
 * @param onConflict `on conflict …`, for rows of which PostgreSQL meets none twice
 */
export async function insertAll(
  db: Sql,
  table: string,
  columns: Columns,
  rows: readonly (readonly (string | number | null)[])[],
  onConflict = '',
): Promise<void> {
  if (rows.length === 0) return;
  const statement = insertion(table, columns, onConflict);
  const runs = db.pick({
    sqlite: () => Promise.all(rows.map((row) => db.run(statement, ...row))),
    postgres: () =>
      db.run(statement, ...Object.keys(columns).map((_, at) => rows.map((row) => row[at] ?? null))),
  });
  await runs();
}

type Columns = Readonly<Record<string, ColumnType>>;

/** Kept by the columns, which are constants: a call that queues a job would spend more on the text than on the rest. */
const INSERTIONS = new WeakMap<Columns, { table: string; onConflict: string; statement: Either<string> }>();

function insertion(table: string, columns: Columns, onConflict: string): Either<string> {
  const known = INSERTIONS.get(columns);
  if (known?.table === table && known.onConflict === onConflict) return known.statement;
  const into = `insert into ${table} (${Object.keys(columns).join(', ')})`;
  const places = Object.values(columns).map((type, at) => [`$${at + 1}`, type] as const);
  const statement = {
    sqlite: `${into} values (${places.map(([place]) => place).join(', ')}) ${onConflict}`,
    postgres: `${into} select * from unnest(${places.map(([place, type]) => `${place}::${type}[]`).join(', ')}) ${onConflict}`,
  };
  INSERTIONS.set(columns, { table, onConflict, statement });
  return statement;
}

/**
 * Runs a statement for each of some rows: on SQLite once for each, which is the fastest there; on PostgreSQL once, with
 * a list for each column.
 *
 * @param same the first values, the same for all rows
 * @returns the rows that the statement returns for all of them
 */
export async function forEach<Row>(
  db: Sql,
  statement: Either<string>,
  same: readonly Value[],
  rows: readonly (readonly (string | number | null)[])[],
): Promise<Row[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const runs = db.pick({
    sqlite: async () =>
      (await Promise.all(rows.map((row) => db.all<Row>(statement, ...same, ...row)))).flat(),
    postgres: () =>
      db.all<Row>(statement, ...same, ...first.map((_, at) => rows.map((row) => row[at] ?? null))),
  });
  return runs();
}

/**
 * A statement that deletes the first rows that match, except those that another transaction has locked.
 *
 * @param of.key the columns of the primary key, or others that say which row it is: `team_id, id`
 * @param of.first `where … order by … limit $n`
 * @param of.index the one that SQLite searches, where it would choose another
 */
export function deletion(of: { table: string; key: string; first: string; index?: string }): Either<string> {
  const { table, key, first, index } = of;
  const use = index === undefined ? '' : `indexed by ${index} `;
  const isSame = key.split(', ').map((column) => `${table}.${column} = old.${column}`);
  return {
    sqlite: `delete from ${table} where (${key}) in (select ${key} from ${table} ${use}${first})`,
    postgres: `
      with old as materialized (select ${key} from ${table} ${first} for update skip locked)
      delete from ${table} using old where ${isSame.join(' and ')}`,
  };
}

/** How much a transaction may still write, because others wait for it. */
export interface Room {
  rows: number;
  bytes: number;
}

/** Records that one transaction may write. */
export const MAX_BATCH = 500;
/** Bytes of rows that one transaction should touch. Measured on SQLite: some 15 ms for a record of 1 MiB. */
export const MAX_BATCH_BYTES = 1_048_576;

export function isFull(room: Room): boolean {
  return room.rows <= 0 || room.bytes <= 0;
}

/**
 * How many rows a transaction deals with before it looks whether it has done enough; `most` where their bytes do not
 * matter. SQLite reads all of a row to find it by its key (4 ms for 1 MiB), and writes all of it to change it;
 * PostgreSQL keeps long values apart. One at a time costs SQLite a third of its speed.
 */
export function atATime(db: Sql, most: number): number {
  return db.pick({ sqlite: Math.min(4, most), postgres: most });
}

/**
 * Deals with the rows of a table in their order, as many as there is room for.
 *
 * @param steps.first reads so many of the first rows that have not been dealt with, with the bytes of each
 * @param steps.upTo deals with the rows up to one of them
 */
export async function inParts<Row extends { bytes: number }>(
  db: Sql,
  room: Room,
  steps: { first(rows: number): Promise<Row[]>; upTo(last: Row): Promise<unknown> },
): Promise<void> {
  let isMore = true;
  while (isMore && !isFull(room)) {
    const rows = atATime(db, room.rows);
    const found = await steps.first(rows);
    let last: Row | undefined;
    for (const row of found) {
      if (room.bytes <= 0) break;
      last = row;
      room.rows -= 1;
      room.bytes -= row.bytes;
    }
    if (last !== undefined) await steps.upTo(last);
    isMore = found.length === rows;
  }
}
