/**
 * Runs statements and transactions on a pool of connections.
 */

import pg from 'pg';
import { type Either, type Part, type Sql, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import { begin, forgetNames, isSetUp, type Limits, send } from './connections.ts';
import { isAftermath, isOutdated } from './failures.ts';

/** Runs statements on a pool, or on the connection of one transaction. */
export class Database implements Sql {
  readonly #runs: pg.Pool | pg.PoolClient;
  readonly #reads: boolean;
  readonly #prepares: boolean;
  readonly #last: Promise<unknown>[] = [];
  #over = false;
  #failure: unknown;

  /**
   * @param options.reads whether to run each statement in a read-only transaction with time limits in the database
   * @param options.prepares whether to prepare statements that have values, on connections that allow it. Set this only
   *   for a few frequent statements whose plans do not depend on the values
   */
  constructor(
    runs: pg.Pool | pg.PoolClient,
    { reads = false, prepares = false }: { reads?: boolean; prepares?: boolean | undefined } = {},
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

  /** Resolves when the statements passed to `last` have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#last);
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

  /**
   * Runs a statement once for each list of values. All are sent together, on one connection. Returns the rows of each,
   * or the error of the database. Rejects if the connection failed.
   */
  each<Row>(sql: string, lists: readonly Value[][]): Promise<PromiseSettledResult<Row[]>[]> {
    const runs = this.#runs;
    if (!(runs instanceof pg.Pool)) throw new Error('These statements run outside of a transaction');
    const sendAll = (prepares: boolean) =>
      onConnection(runs, async (...on) => {
        const sent = lists.map((values) => readOn(on, { prepares }, sql, values.map(storable)));
        // The connection is returned after the last of them.
        const ended = await Promise.allSettled(sent.map(async (one) => (await one).rows as Row[]));
        for (const one of ended) {
          if (one.status === 'fulfilled') continue;
          if (!(one.reason instanceof pg.DatabaseError) || isOutdated(one.reason)) throw one.reason;
        }
        return ended;
      });
    return unlessOutdated(sendAll, this.#prepares);
  }

  /** Runs a statement; returns the number of changed rows. */
  async run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    const { rowCount } = await this.#query(textOf(sql, values, 'postgres'), values);
    return rowCount ?? 0;
  }

  async lock(sql: Statement, ...values: Value[]): Promise<void> {
    await this.#query(textOf(sql, values, 'postgres'), values);
  }

  async last(statements: Promise<unknown>): Promise<void> {
    // `ended` reports the error.
    statements.catch(() => undefined);
    this.#last.push(statements);
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
    const runs = this.#runs;
    if (runs instanceof pg.Pool) {
      const read = (prepares: boolean) =>
        onConnection(runs, (...on) => readOn(on, { prepares }, sql, storables));
      return this.#reads
        ? unlessOutdated(read, this.#prepares)
        : onConnection(runs, (...on) => single(on, this.#prepares, sql, storables));
    }
    const result = send(runs, this.#prepares, sql, storables);
    result.catch((error) => this.fail(error));
    return result;
  }
}

/** Runs a read again, without preparing it, if a migration has changed what was prepared. */
async function unlessOutdated<Result>(
  read: (prepares: boolean) => Promise<Result>,
  prepares: boolean,
): Promise<Result> {
  try {
    return await read(prepares);
  } catch (error) {
    if (!isOutdated(error)) throw error;
    forgetNames();
    return read(false);
  }
}

/** Runs one statement in a read-only transaction with limits. All parts of the transaction are sent together. */
async function readOn(
  [client, discard]: [client: pg.PoolClient, discard: () => void],
  { prepares }: { prepares: boolean },
  sql: string,
  values?: Value[],
): Promise<pg.QueryResult> {
  if (prepares && isSetUp(client)) return single([client, discard], prepares, sql, values);
  const begun = send(client, false, begin(client, { isolation: 'read committed read only', prepares }));
  const result = send(client, prepares, sql, values);
  // After a failure this rolls back.
  const ended = send(client, false, 'commit');
  const [first, , last] = await Promise.allSettled([begun, result, ended]);
  if (first.status === 'rejected' || last.status === 'rejected') discard();
  await begun;
  return result;
}

/** Runs a statement outside of a transaction. */
function single(
  [client, discard]: [client: pg.PoolClient, discard: () => void],
  prepares: boolean,
  sql: string,
  values?: Value[],
): Promise<pg.QueryResult> {
  return send(client, prepares, sql, values).catch((error) => {
    // A connection whose response is late cannot be used again.
    if (!(error instanceof pg.DatabaseError)) discard();
    throw error;
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
    const begun = send(client, false, begin(client, limits));
    begun.catch((error) => db.fail(error));
    try {
      const result = await perform(db);
      db.end();
      if (db.failure !== undefined) throw db.failure;
      const committed = send(client, false, 'commit');
      await Promise.all([begun, committed, db.ended()]);
      // The database rolls back a failed transaction instead of committing it, and reports only the other command.
      if ((await committed).command !== 'COMMIT')
        throw db.failure ?? new Error('The transaction was rolled back');
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
