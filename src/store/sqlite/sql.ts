/**
 * Runs statements of operations on an SQLite connection. Statements run synchronously, and return their results as
 * promises.
 */
import { type Either, type Part, type Sql, type Statement, textOf, type Value, valuesOf } from '../sql.ts';
import type { Value as Bound, Database } from './database.ts';

export class SqliteSql implements Sql {
  readonly #db: Database;
  readonly #inTransaction: boolean;
  #over = false;
  #snapshots = 0;

  /** @param inTransaction whether statements may run only in the currently open transaction */
  constructor(db: Database, { inTransaction = false } = {}) {
    this.#db = db;
    this.#inTransaction = inTransaction;
  }

  async get<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row | undefined> {
    return this.#open().get<Row>(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]> {
    return this.#open().all<Row>(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    return this.#open().run(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async lock(): Promise<void> {}

  pick<Sqlite, Postgres>(either: Either<Sqlite, Postgres>): Sqlite | Postgres {
    return either.sqlite;
  }

  /** Concurrent snapshots share one transaction. Their reads wait for nothing else while the transaction is open. */
  async snapshot<Result>(read: (db: Sql) => Promise<Result>): Promise<Result> {
    if (this.#snapshots === 0) this.#db.run('begin');
    this.#snapshots += 1;
    try {
      return await read(this);
    } finally {
      this.#snapshots -= 1;
      if (this.#snapshots === 0) this.#db.run('commit');
    }
  }

  /**
   * Refuses all further statements. When one of several concurrent parts of an operation fails, the other parts must
   * not run more statements after the rollback.
   */
  end(): void {
    this.#over = true;
  }

  /**
   * Refuses statements if the transaction has ended. When the disk is full, SQLite itself rolls back the transaction.
   * Statements that were sent together with the failed statement would then be committed one by one.
   */
  #open(): Database {
    this.#over ||= this.#inTransaction && !this.#db.inTransaction;
    if (this.#over) throw new Error('This statement was sent after its transaction had ended');
    return this.#db;
  }
}

/** Converts values of types that SQLite does not have. Usually there are none, and the array itself is returned. */
function bindable(values: readonly Value[]): readonly Bound[] {
  return values.some((value) => typeof value === 'boolean' || Array.isArray(value))
    ? values.map(toBound)
    : (values as readonly Bound[]);
}

function toBound(value: Value): Bound {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return Array.isArray(value) ? JSON.stringify(value) : (value as Bound);
}
