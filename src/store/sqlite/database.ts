/** One connection to an SQLite file. No other file imports node:sqlite, because its classes are being renamed. */
import { closeSync, openSync } from 'node:fs';
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** A value that can be bound to a `?`. */
export type Value = SQLInputValue;

/**
 * The oldest supported version. Older versions can lose commits when a WAL is reset:
 * https://sqlite.org/wal.html#walresetbug
 */
const OLDEST_SQLITE = [3, 51, 3] as const;
/** Maximum time that a statement waits for another process's write lock. The wait blocks the thread. */
const BUSY_MS = 5_000;
/**
 * Size of a connection's page cache. The operating system also caches the file. A larger cache made no benchmark faster
 * (150,000 and 400,000 records with random ids), but made the process larger and commits slower. When a B-tree splits,
 * SQLite temporarily gives a page a number beyond the end of the file, and then scans the whole cache to remove this
 * page. With 32 MiB, the scan took 15 % of the writer's time in random order (137 µs per queue call; 112 µs with 8
 * MiB).
 */
const CACHE_KIB = 8_192;
/**
 * The size, in pages, at which the WAL is checkpointed (16 MB). Measured with random ids: a fifth more writes per
 * second than at 1,000 pages, without longer waits for other writes.
 */
const CHECKPOINT_PAGES = 4_000;

/** A WAL file that is larger than this, in bytes, is truncated to this size after a checkpoint. */
const LOG_SIZE_LIMIT = 67_108_864;

export interface DatabaseOptions {
  readOnly?: boolean;
  /** With `FULL`, commits wait for the disk and survive a power failure. `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  /** Maximum time that a statement waits for the lock, in milliseconds. */
  busyMs?: number;
}

/**
 * A connection with a cache of prepared statements. It offers no iterators, because an open iterator would keep the WAL
 * from being reset (measured: the WAL grew to 417 MB).
 *
 * Deleted content is always overwritten with zeros (`secure_delete`), so that a person's data can be erased. Inserting,
 * changing and pruning 200,000 rows took the same time with and without `secure_delete`.
 */
export class Database {
  readonly #handle: DatabaseSync;
  readonly #statements = new Map<string, Prepared>();

  /**
   * Opens the file. Creates the file if it is missing, unless `readOnly` is set. Throws an Error if this SQLite is too
   * old.
   */
  constructor(path: string, options: DatabaseOptions = {}) {
    const { readOnly = false, synchronous = 'FULL', busyMs = BUSY_MS } = options;
    if (!readOnly) makeForOwner(path);
    this.#handle = new DatabaseSync(path, { readOnly, timeout: busyMs });
    try {
      refuseOldSqlite(this.#handle);
      this.#handle.exec(`
        pragma cache_size = ${-CACHE_KIB};
        pragma foreign_keys = on;
        pragma synchronous = ${synchronous};
        pragma wal_autocheckpoint = ${CHECKPOINT_PAGES};
        pragma journal_size_limit = ${LOG_SIZE_LIMIT};
        pragma secure_delete = on;
      `);
    } catch (error) {
      this.#handle.close();
      throw error;
    }
  }

  /** The first row, or undefined. */
  get<Row>(sql: string, ...values: Value[]): Row | undefined {
    const { statement, names } = this.#reading(sql);
    const row = statement.get(...values) as unknown as readonly unknown[] | undefined;
    return row && (toObject(names, row) as Row);
  }

  /** Returns every row. The statement must limit the number of rows. */
  all<Row>(sql: string, ...values: Value[]): Row[] {
    const { statement, names } = this.#reading(sql);
    const rows = statement.all(...values) as unknown as readonly (readonly unknown[])[];
    return rows.map((row) => toObject(names, row) as Row);
  }

  /** Runs a statement; returns the number of changed rows. */
  run(sql: string, ...values: Value[]): number {
    return Number(this.#statement(sql).statement.run(...values).changes);
  }

  /** Runs a script without parameters or results. */
  exec(sql: string): void {
    this.#handle.exec(sql);
  }

  /**
   * Copies the database into another file, in steps of `pages` pages, in a separate thread. This connection may be used
   * between steps, but no transaction may be open at the first step. The copy ends if `onStep` throws.
   */
  async copyTo(
    file: string,
    options: { pages: number; onStep(done: { totalPages: number; remainingPages: number }): void },
  ): Promise<void> {
    await backup(this.#handle, file, { rate: options.pages, progress: options.onStep });
  }

  get isOpen(): boolean {
    return this.#handle.isOpen;
  }

  /**
   * Whether a transaction is open. SQLite may have rolled the transaction back itself, for example because the disk is
   * full.
   */
  get inTransaction(): boolean {
    return this.#handle.isTransaction;
  }

  close(): void {
    this.#statements.clear();
    this.#handle.close();
  }

  /**
   * The cache never evicts a statement. Values are always bound, so the source code limits the number of statements.
   */
  #statement(sql: string): Prepared {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      const statement = this.#handle.prepare(forSqlite(sql));
      statement.setReturnArrays(true);
      prepared = { statement, names: undefined };
      this.#statements.set(sql, prepared);
    }
    return prepared;
  }

  #reading(sql: string): { statement: StatementSync; names: readonly string[] } {
    const prepared = this.#statement(sql);
    prepared.names ??= prepared.statement.columns().map(({ name }) => name);
    return prepared as { statement: StatementSync; names: readonly string[] };
  }
}

interface Prepared {
  statement: StatementSync;
  /** The names of the columns. They are read when they are first needed. */
  names: readonly string[] | undefined;
}

/**
 * Makes an object from a row. Measured with twelve columns: this takes 0.8 µs; SQLite's binding takes 1.1 µs to make an
 * object, or 2.6 µs with a copy.
 */
function toObject(names: readonly string[], row: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let at = 0; at < names.length; at += 1) object[names[at] as string] = row[at];
  return object;
}

/** Opens a database only for `use`. */
export function withDatabase<Result>(
  path: string,
  options: DatabaseOptions,
  use: (db: Database) => Result,
): Result {
  const db = new Database(path, options);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/** Returns the schema version, or 0 if there are no tables. */
export function schemaVersion(db: Database): number {
  return db.get<{ user_version: number }>('pragma user_version')?.user_version ?? 0;
}

/** Primary result codes: https://sqlite.org/rescode.html */
const BUSY = 5;
export const READONLY = 8;
export const IOERR = 10;
export const CORRUPT = 11;
export const FULL = 13;
export const CANTOPEN = 14;
export const NOTADB = 26;

/** Result codes about the file, the disk or another process. All other codes are about the statement. */
const OUTSIDE_CODES: ReadonlySet<number | undefined> = new Set([
  BUSY,
  6, // SQLITE_LOCKED
  7, // SQLITE_NOMEM
  READONLY,
  IOERR,
  CORRUPT,
  FULL,
  CANTOPEN,
  15, // SQLITE_PROTOCOL
  NOTADB,
]);

/** The primary result code of an error thrown by SQLite; undefined for any other error. */
export function resultCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** Whether the error means that the database cannot be used now; false if the statement is wrong. */
export function isOutside(error: unknown): boolean {
  return OUTSIDE_CODES.has(resultCode(error));
}

/** Whether another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === BUSY;
}

/**
 * Creates the file with permissions that let only its owner read it, regardless of the umask. SQLite gives the WAL the
 * same permissions.
 */
function makeForOwner(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // The file exists already, or it cannot be created. In the second case, SQLite reports the error when it opens the
    // file.
  }
}

function refuseOldSqlite(handle: DatabaseSync): void {
  const { version } = handle.prepare('select sqlite_version() as version').get() as { version: string };
  const found = version.split('.').map(Number);
  for (const [place, oldest] of OLDEST_SQLITE.entries()) {
    const part = found[place] ?? 0;
    if (part > oldest) return;
    if (part < oldest) {
      throw new Error(
        `Flowhook needs SQLite ${OLDEST_SQLITE.join('.')} or newer, found ${version}. Use a newer Node release`,
      );
    }
  }
}

/**
 * Rules that translate a statement for both databases into SQLite's dialect. A statement that these rules do not cover
 * is written once for each database, as `{ sqlite, postgres }`.
 */
const RULES: readonly (readonly [RegExp, string])[] = [
  // Numbered parameters start with `?`, because `$` starts the name of a parameter in SQLite.
  [/\$(\d+)/g, '?$1'],
  // Casts and collations are removed, because SQLite keeps the type of a stored value, and compares text by bytes.
  [/::[a-z]+(?:\[\])?/g, ''],
  [/ collate "C"/g, ''],
  // Row locks are removed. There is only one writer, so no other transaction can change the rows that it has read.
  [/\s+for (?:no key update|update|key share|share)(?: of \w+)?(?: skip locked| nowait)?/g, ''],
  [/\bstrpos\(/g, 'instr('],
  // Do not pass nulls to these functions. If one value is null, SQLite returns null, but PostgreSQL returns the other
  // value.
  [/\bgreatest\(/g, 'max('],
  [/\bleast\(/g, 'min('],
  // Lists are passed as JSON.
  [/\bunnest\((\?\d+)\) as (\w+) \((\w+)\)/g, '(select value as $3 from json_each($1)) as $2'],
  [/<> all\((\?\d+)\)/g, 'not in (select value from json_each($1))'],
  [/= any\((\?\d+)\)/g, 'in (select value from json_each($1))'],
  // PostgreSQL sees a comment. SQLite needs the name of the index, because it has no statistics and would scan the
  // table.
  [/\/\* use (\w+) \*\//g, 'indexed by $1'],
  // SQLite plans by the value of a bare `limit ?`, and prepares the statement again whenever a value is bound. It does
  // not plan by the value of an expression. Measured: due deliveries of a lane take 2 µs instead of 9, and prunable
  // jobs 5 µs instead of 70. Null means no limit.
  [/\blimit (\?\d*)/g, 'limit coalesce($1, -1)'],
];

function forSqlite(sql: string): string {
  return RULES.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), sql);
}
