/** The cost of an operation on PostgreSQL, in counts without noise. */
import pg from 'pg';
import { types } from '../../../src/store/postgres/connections.ts';

export interface Work {
  /** Number of statements, including `begin` and `commit`. */
  statements: number;
  /** How often the operation sends statements and waits for their results. */
  trips: number;
  /** Number of pages that its statements read or write, each time that they do, except for their planning. */
  pages: number;
}

/** Counts what the clients of this process do in a database of a server that has loaded `pg_stat_statements`. */
export class RoundTrips {
  readonly #own: pg.Client;
  readonly #query = pg.Client.prototype.query;
  #statements = 0;
  #trips = 0;

  constructor(url: string) {
    this.#own = new pg.Client({ connectionString: url, types });
  }

  async start(): Promise<void> {
    await this.#own.connect();
    await this.#own.query('create extension pg_stat_statements');
    const counts = this;
    const query = this.#query as (...given: unknown[]) => unknown;
    let isSending = false;
    pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
      if (this !== counts.#own) {
        counts.#statements += 1;
        if (!isSending) counts.#trips += 1;
        isSending = true;
        process.nextTick(() => {
          isSending = false;
        });
      }
      return query.apply(this, given);
    } as typeof pg.Client.prototype.query;
  }

  /** Runs a statement that does not count. */
  async rows(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return (await this.#own.query(sql, values)).rows;
  }

  async count<Value>(
    operation: () => Promise<Value>,
  ): Promise<{ value: Value; work: Work; largest: string }> {
    await this.rows('select pg_stat_statements_reset()');
    this.#statements = 0;
    this.#trips = 0;
    const value = await operation();
    const [statements, trips] = [this.#statements, this.#trips];
    const read = await this.rows(
      `select query, (shared_blks_hit + shared_blks_read)::integer as pages from pg_stat_statements
       where dbid = (select oid from pg_database where datname = current_database())
         and query not like '%pg_stat_statements%'
       order by pages desc`,
    );
    const pages = read.reduce((sum, row) => sum + (row.pages as number), 0);
    const largest = read[0] === undefined ? '' : `${read[0].pages} pages: ${read[0].query}`;
    return { value, work: { statements, trips, pages }, largest };
  }

  async stop(): Promise<void> {
    pg.Client.prototype.query = this.#query;
    await this.#own.end();
  }
}
