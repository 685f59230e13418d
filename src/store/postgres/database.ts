/**
 * Connections to a PostgreSQL database: the only importer of pg.
 *
 * Nothing here depends on a session (no `set`, only advisory locks of transactions, and prepared statements only on
 * connections known to be the server's own), so that a proxy may send each transaction to another connection.
 */

import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Logger } from '../../observe/log.ts';
import { clientUrl } from '../database-url.ts';
import { type Either, type Part, type Sql, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import { isAftermath, isOutdated } from './failures.ts';

/** Maximum time for connecting. */
const CONNECT_MS = 5_000;
/** Maximum time for a statement. After this time, the statement is canceled both here and in the database. */
const STATEMENT_MS = 30_000;
/** Maximum time to wait for a response. After this time, the connection is considered lost. */
const ANSWER_MS = STATEMENT_MS + 5_000;
/** Maximum time to wait for a lock. No healthy transaction of the service holds a lock for this long. */
const LOCK_MS = 2_000;
/**
 * Maximum time that a transaction may be idle. An idle transaction belongs to a process that hangs, and must not keep
 * locks.
 */
const IDLE_IN_TRANSACTION_MS = 15_000;
const IDLE_CONNECTION_MS = 30_000;

// Times and counters are stored as bigint. They stay far below 2^53, so a JavaScript number holds them exactly.
const INT8 = 20;
const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
};

export interface PoolOptions {
  url: string;
  /** Maximum number of connections. */
  size: number;
  log: Logger;
  /** Maximum time until a statement returns, in milliseconds. Set this for statements that may run longer than 30 s. */
  answerMs?: number;
}

/** A pool of connections: each statement runs on any free connection. */
export function openPool({ url, size, log, answerMs = ANSWER_MS }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: clientUrl(url),
    max: size,
    types,
    application_name: 'flowhook',
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    query_timeout: answerMs,
    keepAlive: true,
    pipeline: true,
  } as pg.PoolConfig);
  // If an idle connection fails, the next statement gets another connection. The error object is not logged, because it
  // contains the client and its password.
  pool.on('error', (error) => {
    const { code, message } = error as Error & { code?: string };
    log.warn({ code, reason: message }, 'database.connection_lost');
  });
  // Without this listener, an error while a connection is being handed over would end the process. The error can be
  // ignored, because the next statement on the connection fails anyway.
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    noteDirect(client);
  });
  return pool;
}

/**
 * Connections without a pooler between this process and the server. Statements can be prepared only on these
 * connections. A server announces the id of its own process, which then executes every statement; a pooler announces
 * some other id.
 */
const direct = new WeakSet<pg.ClientBase>();

function noteDirect(client: pg.PoolClient): void {
  const { processID } = client as unknown as { processID: number };
  client.query('select pg_backend_pid() as pid').then(
    ({ rows }) => {
      if (rows[0]?.pid === processID) direct.add(client);
    },
    () => undefined,
  );
}

/** Matches statements that compare with a list. Their best plan depends on the length of the list. */
const LISTS = /= any\(\$/;

/**
 * Names of prepared statements. A name is derived from the statement's text, so it means the same on every connection.
 */
const names = new Map<string, string>();
/** This number increases when a migration has changed tables, so that all statements are prepared again. */
let generation = 0;

function nameOf(sql: string): string {
  let name = names.get(sql);
  if (name === undefined) {
    name = `flowhook ${createHash('sha256').update(sql).digest('base64url').slice(0, 22)} ${generation}`;
    names.set(sql, name);
  }
  return name;
}

function forgetNames(): void {
  names.clear();
  generation += 1;
}

/** Runs statements on a pool, or on the connection of one transaction. */
export class Database implements Sql {
  readonly #runs: pg.Pool | pg.PoolClient;
  readonly #reads: boolean;
  readonly #prepares: boolean;
  #over = false;
  #failure: unknown;

  /**
   * @param options.reads whether to run each statement in a read-only transaction with time limits in the database
   * @param options.prepares whether to prepare statements that have values, on connections that allow it. Set this only
   *   for a few frequent statements whose plans do not depend on the values
   */
  constructor(
    runs: pg.Pool | pg.PoolClient,
    { reads = false, prepares = false }: { reads?: boolean; prepares?: boolean } = {},
  ) {
    this.#runs = runs;
    this.#reads = reads;
    this.#prepares = prepares;
  }

  /** The first error of the transaction. Later statements report only that the transaction has failed. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Keeps the error, unless an earlier error was kept. */
  fail(error: unknown): void {
    this.#failure ??= error;
  }

  /**
   * Refuses all further statements. When one of several concurrent parts of a transaction fails, the other parts must
   * not send more statements after the rollback: the connection may already serve another caller.
   */
  end(): void {
    this.#over = true;
  }

  async get<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0];
  }

  async all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]> {
    const { rows } = await this.#query(textOf(sql, values, 'postgres'), values);
    return rows as Row[];
  }

  /** Runs a statement; returns the number of changed rows. */
  async run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    const { rowCount } = await this.#query(textOf(sql, values, 'postgres'), values);
    return rowCount ?? 0;
  }

  async lock(sql: Statement, ...values: Value[]): Promise<void> {
    await this.#query(textOf(sql, values, 'postgres'), values);
  }

  /** Runs statements without parameters and without results. */
  async exec(sql: string): Promise<void> {
    await this.#query(sql);
  }

  pick<Sqlite, Postgres>(either: Either<Sqlite, Postgres>): Sqlite | Postgres {
    return either.postgres;
  }

  /** Runs several reads on one connection, in one snapshot of the database. */
  snapshot<Result>(read: (db: Sql) => Promise<Result>): Promise<Result> {
    if (!(this.#runs instanceof pg.Pool))
      throw new Error('A snapshot cannot be taken inside of a transaction');
    return inTransaction(this.#runs, read, { isolation: 'repeatable read read only' });
  }

  #query(sql: string, given?: (Value | Part)[]): Promise<pg.QueryResult> {
    if (this.#over)
      return Promise.reject(new Error('This statement was sent after its transaction had ended'));
    const storables = given && valuesOf(given).map(storable);
    if (this.#runs instanceof pg.Pool) {
      return this.#reads
        ? readWith(this.#runs, { prepares: this.#prepares }, sql, storables)
        : this.#runs.query(sql, storables);
    }
    const result = send(this.#runs, this.#prepares, sql, storables);
    result.catch((error) => this.fail(error));
    return result;
  }
}

function send(
  client: pg.PoolClient,
  prepares: boolean,
  text: string,
  values?: Value[],
): Promise<pg.QueryResult> {
  const isPrepared =
    prepares && values !== undefined && values.length > 0 && !LISTS.test(text) && direct.has(client);
  return isPrepared ? client.query({ name: nameOf(text), text, values }) : client.query(text, values);
}

/** Runs one statement in a read-only transaction with limits. All parts of the transaction are sent together. */
async function readWith(
  pool: pg.Pool,
  { prepares }: { prepares: boolean },
  sql: string,
  values?: Value[],
): Promise<pg.QueryResult> {
  try {
    return await readOnce(pool, { prepares }, sql, values);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    forgetNames();
    return readOnce(pool, { prepares: false }, sql, values);
  }
}

function readOnce(
  pool: pg.Pool,
  { prepares }: { prepares: boolean },
  sql: string,
  values?: Value[],
): Promise<pg.QueryResult> {
  return onConnection(pool, async (client, discard) => {
    const begun = client.query(begin({ isolation: 'read committed read only', prepares }));
    const result = send(client, prepares, sql, values);
    // After a failure this rolls back.
    const ended = client.query('commit');
    const [first, , last] = await Promise.allSettled([begun, result, ended]);
    if (first.status === 'rejected' || last.status === 'rejected') discard();
    await begun;
    return result;
  });
}

/** Replaces NUL with U+FFFD. Responses and log lines may contain NUL, which PostgreSQL cannot store in text. */
function storable(value: Value): Value {
  if (Array.isArray(value))
    return value.some(hasNul) ? (value.map((item) => storable(item)) as Value) : value;
  return typeof value === 'string' && hasNul(value) ? value.replaceAll('\0', '\ufffd') : value;
}

function hasNul(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\0');
}

/** Which changes of other transactions a transaction sees. */
export type Isolation = 'read committed' | 'read committed read only' | 'repeatable read read only';

export interface Limits {
  isolation?: Isolation;
  /** Whether statements are prepared (see `Database`). */
  prepares?: boolean;
  /** Maximum time for one statement. */
  statementMs?: number;
  /** Maximum time to wait for a lock; 0 means no limit. */
  lockMs?: number;
}

/**
 * A prepared statement has one plan for all values, often made while the tables have few rows. These settings prevent a
 * plan that reads and sorts whole tables, or a whole list when the statement needs only a few of its rows.
 */
const KEPT_PLANS =
  '; set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off';

/**
 * Returns the SQL that begins a transaction. JIT is off, because compiling a plan would take longer than any statement.
 */
function begin({
  isolation = 'read committed',
  statementMs = STATEMENT_MS,
  lockMs = LOCK_MS,
  prepares = false,
}: Limits): string {
  return (
    `begin isolation level ${isolation}; set local jit = off; set local statement_timeout = ${statementMs}; ` +
    `set local lock_timeout = ${lockMs}; ` +
    `set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}` +
    (prepares ? KEPT_PLANS : '')
  );
}

/**
 * Runs `perform` in one transaction on one connection. When it throws, the transaction is rolled back and the error
 * rethrown; a connection that cannot be rolled back is closed. When the database has refused a statement, its first
 * error is thrown, even if nobody awaited that statement.
 *
 * @param limits default to those of the service; migrations take longer
 */
export function inTransaction<Result>(
  pool: pg.Pool,
  perform: (db: Database) => Promise<Result>,
  limits: Limits = {},
): Promise<Result> {
  return onConnection(pool, async (client, discard) => {
    const db = new Database(client, limits);
    // `begin` is not awaited. The first statement is sent directly after `begin`, and runs in the open transaction.
    const begun = client.query(begin(limits));
    begun.catch((error) => db.fail(error));
    try {
      const result = await perform(db);
      db.end();
      await begun;
      // A failed transaction must not be committed, because the database would roll it back and still report success.
      if (db.failure !== undefined) throw db.failure;
      await client.query('commit');
      return result;
    } catch (error) {
      db.end();
      if (isOutdated(db.failure)) forgetNames();
      try {
        await begun;
        await client.query('rollback');
      } catch {
        discard();
      }
      throw isAftermath(error) ? (db.failure ?? error) : error;
    }
  });
}

/**
 * Takes a connection from the pool, passes it to `use`, and returns it to the pool. A connection that was lost or that
 * `use` discards is closed instead.
 */
async function onConnection<Result>(
  pool: pg.Pool,
  use: (client: pg.PoolClient, discard: () => void) => Promise<Result>,
): Promise<Result> {
  const fromMs = performance.now();
  const client = await pool.connect();
  waited.set(pool, performance.now() - fromMs);
  let isBroken = false;
  const discard = () => {
    isBroken = true;
  };
  // The listener need not report the error, because the running statement of a lost connection rejects as well.
  client.on('error', discard);
  try {
    return await use(client, discard);
  } finally {
    client.off('error', discard);
    client.release(isBroken);
  }
}

/** How long the most recent caller waited for a connection of each pool, in milliseconds. */
const waited = new WeakMap<pg.Pool, number>();

/** How long callers currently wait for a connection of a pool, in milliseconds. */
export function connectionWaitMs(pool: pg.Pool): number {
  return pool.waitingCount === 0 ? 0 : (waited.get(pool) ?? 0);
}
