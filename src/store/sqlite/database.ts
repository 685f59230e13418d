/** One connection to an SQLite file: the only importer of node:sqlite, whose classes are being renamed. */
import { closeSync, openSync } from 'node:fs';
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** A value that can be bound to a `?`. */
export type Value = SQLInputValue;

/** Older versions can lose commits when a WAL is reset: https://sqlite.org/wal.html#walresetbug */
const OLDEST_SQLITE = [3, 51, 3] as const;
/** How long a statement waits for another process's write lock; this blocks the thread. */
const BUSY_MS = 5_000;
/**
 * Page cache of a connection; the operating system also caches the file. Larger caches make no run faster (150,000 and
 * 400,000 records with random ids), and make the process larger and commits slower: when a B-tree splits, SQLite
 * temporarily gives a page a number beyond the end of the file, and then scans the whole cache to remove it. With 32 MiB
 * that was 15 % of the writer's time in random order (137 µs per queue call; 112 µs with 8 MiB).
 */
const WRITER_CACHE_KIB = 8_192;
const READER_CACHE_KIB = 16_384;
/**
 * The size of the WAL, in pages, at which it is checkpointed (16 MB). Measured with random ids: a fifth more writes per
 * second than with 1,000 pages, and no other write waits longer.
 */
const CHECKPOINT_PAGES = 4_000;

/** Bytes to which a larger WAL file is truncated after a checkpoint. */
const LOG_SIZE_LIMIT = 67_108_864;

export interface DatabaseOptions {
  readOnly?: boolean;
  /** `FULL`: commits wait for the disk and survive a power failure. `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  /** How long a statement waits for the lock, in milliseconds. */
  busyMs?: number;
}

/**
 * A connection with a cache of prepared statements. It has no iterators: an open one would keep the WAL from being reset
 * (measured: it grew to 417 MB).
 *
 * Deleted content is always overwritten with zeros (`secure_delete`), for erasing people. Inserting, changing and pruning
 * 200,000 rows took the same time with and without it.
 */
export class Database {
  readonly #handle: DatabaseSync;
  readonly #statements = new Map<string, Prepared>();

  /** Opens the file, and creates it unless `readOnly`. Throws an Error if this SQLite is too old. */
  constructor(path: string, options: DatabaseOptions = {}) {
    const { readOnly = false, synchronous = 'FULL', busyMs = BUSY_MS } = options;
    if (!readOnly) makeForOwner(path);
    this.#handle = new DatabaseSync(path, { readOnly, timeout: busyMs });
    try {
      refuseOldSqlite(this.#handle);
      this.#handle.exec(`
        pragma cache_size = ${readOnly ? -READER_CACHE_KIB : -WRITER_CACHE_KIB};
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

  /** Every row; the statement must bound how many. */
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
   * Copies the database into another file, `pages` pages per step, in a thread of its own. This connection may be used
   * between steps, but no transaction may be open at the first step. An error thrown by `onStep` ends the copy.
   */
  async copyTo(
    file: string,
    options: { pages: number; onStep(done: { totalPages: number; remainingPages: number }): void },
  ): Promise<void> {
    await backup(this.#handle, file, { rate: options.pages, progress: options.onStep });
  }

  /** Whether a transaction is open. SQLite may have rolled it back itself, for example because the disk is full. */
  get inTransaction(): boolean {
    return this.#handle.isTransaction;
  }

  close(): void {
    this.#statements.clear();
    this.#handle.close();
  }

  /** Never evicts: values are always bound, so the source code limits the number of different statements. */
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
  /** The names of the columns, once they are needed. */
  names: readonly string[] | undefined;
}

/** Measured with twelve columns: 0.8 µs; the object made by SQLite's binding takes 1.1 µs, or 2.6 µs with a copy. */
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

/** The schema version; 0 if there are no tables. */
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

/** Codes about the file, the disk or another process, not about the statement. */
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

/** Creates the file readable only by its owner, independent of the umask. SQLite gives the WAL the same mode. */
function makeForOwner(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // The file exists, or cannot be created, which SQLite will report.
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
 * How a statement for both databases is translated for SQLite. What these rules do not cover is written twice, as
 * `{ sqlite, postgres }`.
 */
const RULES: readonly (readonly [RegExp, string])[] = [
  // Numbered parameters: in SQLite `$` starts a name.
  [/\$(\d+)/g, '?$1'],
  // Values have the type that was stored, and texts are compared by bytes.
  [/::[a-z]+(?:\[\])?/g, ''],
  [/ collate "C"/g, ''],
  // There is one writer: nobody else can change what it has read.
  [/\s+for (?:no key update|update|key share|share)(?: of \w+)?(?: skip locked| nowait)?/g, ''],
  [/\bstrpos\(/g, 'instr('],
  // If one value is null, these return null on SQLite but the other value on PostgreSQL: do not pass nulls.
  [/\bgreatest\(/g, 'max('],
  [/\bleast\(/g, 'min('],
  // Lists are passed as JSON.
  [/\bunnest\((\?\d+)\) as (\w+) \((\w+)\)/g, '(select value as $3 from json_each($1)) as $2'],
  [/<> all\((\?\d+)\)/g, 'not in (select value from json_each($1))'],
  [/= any\((\?\d+)\)/g, 'in (select value from json_each($1))'],
  // A comment for PostgreSQL. Needed where SQLite, which has no statistics here, would scan the table.
  [/\/\* use (\w+) \*\//g, 'indexed by $1'],
  // SQLite plans by the value of a bare `limit ?`, and prepares the statement again whenever the value is bound; it does
  // not evaluate an expression. Measured: 2 µs instead of 9 for due deliveries of a lane, 5 instead of 70 for prunable jobs.
  // A null means no limit.
  [/\blimit (\?\d*)/g, 'limit coalesce($1, -1)'],
];

function forSqlite(sql: string): string {
  return RULES.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), sql);
}
