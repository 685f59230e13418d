/**
 * The few ways to run a statement on either database. Every operation is written against this interface.
 *
 * Statements are written once, in PostgreSQL's SQL, with each value in its place: db.get`select … where id = ${id}`. A
 * statement that is a constant text, or that uses a value several times, contains `$1` and so on for the values passed
 * after it. `sqlite/database.ts` translates statements for SQLite. If the databases need different statements, both are
 * given: `{ sqlite, postgres }`.
 */

/** A parameter of a statement. SQLite stores true as 1 and receives a list as JSON. */
export type Value = string | number | boolean | null | Uint8Array | readonly (string | number | null)[];

/** Something that differs between the databases. */
export interface Either<Sqlite, Postgres = Sqlite> {
  readonly sqlite: Sqlite;
  readonly postgres: Postgres;
}

/**
 * A statement for both databases, a statement for each, or a template. The values of a template are sent as parameters,
 * never as text.
 */
export type Statement = string | Either<string> | TemplateStringsArray;

/** A piece of SQL that a template includes as text instead of sending it as a parameter. */
export class Part {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** Returns the statement for one database, with `$n` for its parameters. */
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

/** Returns those values of a template that are sent as parameters. */
export function valuesOf(given: readonly (Value | Part)[]): readonly Value[] {
  return given.some(partOf)
    ? given.filter((one): one is Value => !(one instanceof Part))
    : (given as Value[]);
}

/** Statements already made from templates, with the parts that each statement includes. */
const TEMPLATES = new WeakMap<TemplateStringsArray, { parts: readonly (Part | undefined)[]; text: string }>();

/** Returns the variant for one database. */
export type Pick = <Sqlite, Postgres>(either: Either<Sqlite, Postgres>) => Sqlite | Postgres;

/**
 * Builds a statement in which only some parts differ between the databases: `both((pick) => \`select … ${pick({ sqlite:
 * '…', postgres: '…' })} …\`)`.
 */
export function both(text: (pick: Pick) => string): Either<string> {
  return { sqlite: text((either) => either.sqlite), postgres: text((either) => either.postgres) };
}

export interface Sql {
  get<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row | undefined>;
  all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]>;
  /** Runs a statement; returns the number of changed rows. */
  run(sql: Statement, ...values: (Value | Part)[]): Promise<number>;
  /**
   * Locks rows until the commit, by `select 1 … for …`. Does nothing on SQLite, where only one transaction writes at a
   * time.
   */
  lock(sql: Statement, ...values: Value[]): Promise<void>;
  /**
   * Awaits statements after which the operation does nothing more. On PostgreSQL this does not wait for them: the
   * commit is sent together with them, and if one fails, the transaction is not committed.
   */
  last(statements: Promise<unknown>): Promise<void>;
  /** Returns the variant for this database. */
  pick<Sqlite, Postgres>(either: Either<Sqlite, Postgres>): Sqlite | Postgres;
  /** Runs several reads that all see the same state of the database. Not available in a transaction that writes. */
  snapshot<Result>(read: (db: Sql) => Promise<Result>): Promise<Result>;
}

/** The type of a column, by PostgreSQL's name. */
export type ColumnType = 'text' | 'bigint' | 'integer' | 'boolean';

/**
 * Inserts rows. PostgreSQL uses a single statement for all rows. SQLite runs a prepared statement per row, which is
 * fastest there.
 *
 * @param columns the type of each column, in the order of a row's values
 * @param onConflict a clause `on conflict …`; on PostgreSQL no two of the inserted rows may conflict with the same
 *   stored row
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

/**
 * Statements are cached by their columns, which are constants. Building the text each time would take longer than all
 * other work of a call that queues a job.
 */
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
 * Runs a statement for each row. On SQLite it runs once per row, which is fastest there. On PostgreSQL it runs once,
 * and receives a list per column.
 *
 * @param same the first values, which are the same for all rows
 * @returns the rows that the statement returns
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
 * Returns a statement that deletes the first rows that match, except rows locked by another transaction.
 *
 * @param of.key columns that identify a row, usually the primary key: `team_id, id`
 * @param of.first selects the rows: `where … order by … limit $n`
 * @param of.index the index that SQLite must use, if it would choose another
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

/** How much more a transaction may write, because others wait for it. */
export interface Room {
  rows: number;
  bytes: number;
}

/**
 * Maximum number of new records that one transaction writes, which takes SQLite about 5 ms. Ingesting new records in batches
 * of 500 took a quarter more processor time, because each commit waits for the disk, and makes readers drop their caches.
 */
export const MAX_BATCH = 2_000;
/** Number of bytes of rows that one transaction should touch. Measured on SQLite: about 15 ms for a record of 1 MiB. */
export const MAX_BATCH_BYTES = 1_048_576;

export function isFull(room: Room): boolean {
  return room.rows <= 0 || room.bytes <= 0;
}

/**
 * Returns how many rows a transaction handles before it checks whether it has done enough. `most` is the number for
 * PostgreSQL, where the size of rows does not matter, because it stores long values separately. SQLite reads a whole
 * row to find it by its key (4 ms for 1 MiB), and writes the whole row to change it. But handling one row at a time
 * would make SQLite a third slower.
 */
export function atATime(db: Sql, most: number): number {
  return db.pick({ sqlite: Math.min(4, most), postgres: most });
}

/**
 * Handles rows of a table in order until `room` is used up.
 *
 * @param steps.first reads the first rows that are not handled yet, with the size of each in bytes
 * @param steps.upTo handles all rows up to and including the given row
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
