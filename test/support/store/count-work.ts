/** The cost of an operation on SQLite, in counts without noise. */

import { readFileSync } from 'node:fs';
import { type Call, runBatch } from '../../../src/store/sqlite/batch.ts';
import { Database, type Value } from '../../../src/store/sqlite/database.ts';
import { SqliteSql } from '../../../src/store/sqlite/sql.ts';
import type { View } from '../../../src/store/transaction.ts';

export interface Work {
  /** Number of statements, including `begin` and `commit`. */
  statements: number;
  /** Number of different pages of the file or its log that were read. */
  read: number;
  /** Number of pages written to the log. */
  written: number;
}

/** Bytes of a page, and of a page with its header in the log. */
const PAGE = 4_096;
const FRAME = PAGE + 24;

/** A connection that counts its statements. */
class CountingDatabase extends Database {
  statements = 0;

  override get<Row>(sql: string, ...values: Value[]): Row | undefined {
    this.statements += 1;
    return super.get(sql, ...values);
  }
  override all<Row>(sql: string, ...values: Value[]): Row[] {
    this.statements += 1;
    return super.all(sql, ...values);
  }
  override run(sql: string, ...values: Value[]): number {
    this.statements += 1;
    return super.run(sql, ...values);
  }
}

/**
 * One connection for reading and writing. Its cache is empty before each operation and large enough for the operation,
 * so that each page is read from the system once. There are no checkpoints of the log.
 */
export class Counter {
  readonly #db: CountingDatabase;
  readonly #now: () => number;

  /** @param now the clock of the operations, in epoch milliseconds */
  constructor(path: string, now: () => number) {
    this.#db = new CountingDatabase(path, { synchronous: 'OFF' });
    this.#db.exec('pragma wal_autocheckpoint = 0');
    this.#now = now;
  }

  /** Runs a writing operation as the only one in its batch. @throws the error of the operation */
  write<Value>(name: Call['name'], input: unknown): Promise<{ value: Value; work: Work }> {
    return this.#count(async () => {
      const batch = { now: this.#now(), publicUrl: '', calls: [{ name, input }] };
      const [result] = (await runBatch(this.#db, batch)).results;
      if (result?.ok !== true) throw new Error(`${name} was refused: ${JSON.stringify(result)}`);
      return result.value as Value;
    });
  }

  /** Runs a reading operation. */
  read<Value>(operation: (view: View) => Promise<Value>): Promise<{ value: Value; work: Work }> {
    return this.#count(() => operation({ db: new SqliteSql(this.#db), now: this.#now() }));
  }

  /** The number of entries in each B-tree (one per table and index). */
  entries(): Map<string, number> {
    // Inner pages of tables with a rowid only repeat keys. Inner pages of other trees contain entries.
    const rows = this.#db.all<{ name: string; entries: number }>(
      `select stat.name, sum(stat.ncell) as entries
       from dbstat stat
       left join pragma_table_list list on list.schema = 'main' and list.name = stat.name and list.wr = 0
       where stat.pagetype <> 'overflow' and (stat.pagetype = 'leaf' or list.name is null)
       group by stat.name`,
    );
    return new Map(rows.map(({ name, entries }) => [name, entries]));
  }

  close(): void {
    this.#db.close();
  }

  async #count<Value>(operation: () => Promise<Value>): Promise<{ value: Value; work: Work }> {
    this.#db.exec('pragma shrink_memory');
    this.#db.statements = 0;
    const before = processIo();
    const value = await operation();
    const after = processIo();
    return {
      value,
      work: {
        statements: this.#db.statements,
        read: Math.floor((after.read - before.read) / PAGE),
        written: Math.floor((after.written - before.written) / FRAME),
      },
    };
  }
}

/** Bytes that this process has read and written (proc(5), io), including the read of this file. */
function processIo(): { read: number; written: number } {
  const text = readFileSync('/proc/self/io', 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)?.[1]);
  return { read: field('rchar'), written: field('wchar') };
}
