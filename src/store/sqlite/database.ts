/** One connection to an SQLite file: the only importer of node:sqlite, whose classes are being renamed. */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';

/** What a statement's `?` may stand for. */
export type Value = SQLInputValue;

/** Older ones can lose commits when a WAL is reset: https://sqlite.org/wal.html#walresetbug */
const OLDEST_SQLITE = [3, 51, 3] as const;
/** How long a statement waits for another process that holds the write lock. The wait blocks its thread. */
const BUSY_MS = 5_000;
/**
 * Pages that a connection keeps. Measured with 400,000 records under random ids: 64 MiB each made no run faster
 * and the process 80 MB larger, for the system keeps the file's pages too.
 */
const WRITER_CACHE_KIB = 32_768;
const READER_CACHE_KIB = 16_384;
/**
 * The log is folded into the file when it has so many pages (16 MB). Measured: of random ids a fifth more are
 * written in a second than with 1,000 pages, and no other write waits longer.
 */
const CHECKPOINT_PAGES = 4_000;

export interface DatabaseOptions {
  readOnly?: boolean;
  /** What a commit waits for: `FULL` survives a power cut, `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  busyMs?: number;
}

/**
 * A connection with a cache of prepared statements. Every statement runs to its end at once: an iterator left
 * open would keep the WAL from being reset (measured: it grew to 417 MB).
 */
export class Database {
  readonly #handle: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #arrays = new Map<string, StatementSync>();

  /** Opens the file, making it unless `readOnly`. Throws an Error with a sentence if this SQLite is too old. */
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
        pragma journal_size_limit = 67108864;
        pragma secure_delete = on;
      `);
    } catch (error) {
      this.#handle.close();
      throw error;
    }
  }

  /** The first row, or nothing. */
  get<Row>(sql: string, ...values: Value[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** Every row; the statement bounds how many. */
  all<Row>(sql: string, ...values: Value[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /**
   * Every row as an array of its columns: for reads of thousands of rows a second. Measured with twelve columns: 0.8 µs
   * a row with an object made of them, where `all` and a copy of its objects, which V8 keeps as dictionaries, take 2.9.
   */
  arrays<Row extends readonly unknown[]>(sql: string, ...values: Value[]): Row[] {
    let statement = this.#arrays.get(sql);
    if (statement === undefined) {
      statement = this.#handle.prepare(plannedOnce(sql));
      statement.setReturnArrays(true);
      this.#arrays.set(sql, statement);
    }
    return statement.all(...values) as unknown as Row[];
  }

  /** Runs a statement; answers how many rows it changed. */
  run(sql: string, ...values: Value[]): number {
    return Number(this.#statement(sql).run(...values).changes);
  }

  /** Runs a script that takes no values and answers nothing. */
  exec(sql: string): void {
    this.#handle.exec(sql);
  }

  /** Whether a transaction is open. A full disk may have ended one behind our back. */
  get inTransaction(): boolean {
    return this.#handle.isTransaction;
  }

  close(): void {
    this.#statements.clear();
    this.#arrays.clear();
    this.#handle.close();
  }

  /** The cache is as large as the source has different statements: none is put together at run time. */
  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#handle.prepare(plannedOnce(sql));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * SQLite looks at the number behind a bare `limit ?` as it plans, and so plans anew each time that one is bound. An
 * expression it leaves alone. Measured: what is due in a lane took 9 µs and takes 2, jobs to be pruned 70 and 5.
 */
function plannedOnce(sql: string): string {
  return sql.replace(/\blimit (\?\d*)/g, 'limit $1 + 0');
}

/** Primary result codes that speak of the file, the disk or another process, and not of the statement. */
const OUTSIDE_CODES = new Set([
  5, // SQLITE_BUSY
  6, // SQLITE_LOCKED
  7, // SQLITE_NOMEM
  8, // SQLITE_READONLY
  10, // SQLITE_IOERR
  11, // SQLITE_CORRUPT
  13, // SQLITE_FULL
  14, // SQLITE_CANTOPEN
  15, // SQLITE_PROTOCOL
  26, // SQLITE_NOTADB
]);

/** Whether an error says that the database cannot be used now, rather than that a statement was wrong. */
export function isOutside(error: unknown): boolean {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' && OUTSIDE_CODES.has(code & 0xff);
}

/** Whether an error says that somebody else holds the lock. */
export function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' && (code & 0xff) === 5;
}

/** Whether an error says that the disk is full. */
export function isFull(error: unknown): boolean {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' && (code & 0xff) === 13;
}

/** For its owner alone from its first byte on, whatever the umask; the files beside it follow it. */
function makeForOwner(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // It is there, or it cannot be made: then SQLite says so.
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
