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

  /** @param inTransaction whether statements may run only in the currently open transaction */
  constructor(db: Database, { inTransaction = false } = {}) {
    this.#db = db;
    this.#inTransaction = inTransaction;
  }

  /** The connection for the next statement. */
  protected get db(): Database {
    return this.#open();
  }

  async get<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row | undefined> {
    return this.db.get<Row>(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async all<Row>(sql: Statement, ...values: (Value | Part)[]): Promise<Row[]> {
    return this.db.all<Row>(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async run(sql: Statement, ...values: (Value | Part)[]): Promise<number> {
    return this.db.run(textOf(sql, values, 'sqlite'), ...bindable(valuesOf(values)));
  }

  async lock(): Promise<void> {}

  async last(statements: Promise<unknown>): Promise<void> {
    await statements;
  }

  pick<Sqlite, Postgres>(either: Either<Sqlite, Postgres>): Sqlite | Postgres {
    return either.sqlite;
  }

  /** Runs the reads. The statements of a transaction, and of a `ReadingSql`, see one snapshot in any case. */
  snapshot<Result>(read: (db: Sql) => Promise<Result>): Promise<Result> {
    return read(this);
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

/**
 * Runs the statements of reads, which share transactions. A transaction begins with a statement, and ends before the
 * event loop continues. So a read that waits for nothing else sees one snapshot, and every read sees all commits that
 * were reported before it started. SQLite locks the file only once per transaction: a statement that finds one row takes
 * 0.5 µs instead of 2.7 µs.
 */
export class ReadingSql extends SqliteSql {
  #isReading = false;

  protected override get db(): Database {
    const db = super.db;
    if (!this.#isReading) this.#begin(db);
    return db;
  }

  #begin(db: Database): void {
    db.run('begin');
    this.#isReading = true;
    // Runs when all promises have continued that do not wait for the event loop.
    process.nextTick(() => {
      this.#isReading = false;
      // The connection may have been closed, or SQLite may have ended the transaction after an error.
      if (db.isOpen && db.inTransaction) db.run('commit');
    });
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
