/** What one operation on SQLite costs, in numbers that no noise can change. */

import { readFileSync } from 'node:fs';
import { type Call, runBatch } from '../../../src/store/sqlite/batch.ts';
import { Database, type Value } from '../../../src/store/sqlite/database.ts';
import { SqliteSql } from '../../../src/store/sqlite/sql.ts';
import type { View } from '../../../src/store/transaction.ts';

export interface Work {
  /** Statements that were run, those that begin and commit included. */
  statements: number;
  /** Different pages of the file, or of its log, that were looked at. */
  read: number;
  /** Pages that were written to the log. */
  written: number;
}

/** A page, and what stands before it in the log. */
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
 * One connection for reading and writing. Before an operation its cache is emptied, and the operation itself fits into
 * it: the system is then asked once for each page that is looked at. The log is never folded meanwhile.
 */
export class Counter {
  readonly #db: CountingDatabase;
  readonly #now: () => number;

  /** @param now epoch milliseconds: what every operation takes for the present */
  constructor(path: string, now: () => number) {
    this.#db = new CountingDatabase(path, { synchronous: 'OFF' });
    this.#db.exec('pragma wal_autocheckpoint = 0');
    this.#now = now;
  }

  /** Runs an operation that writes, as the only one of its batch. Throws what it throws. */
  write<Value>(name: Call['name'], input: unknown): Promise<{ value: Value; work: Work }> {
    return this.#count(async () => {
      const batch = { now: this.#now(), publicUrl: '', calls: [{ name, input }] };
      const [answer] = (await runBatch(this.#db, batch)).results;
      if (answer?.ok !== true) throw new Error(`${name} was refused: ${JSON.stringify(answer)}`);
      return answer.value as Value;
    });
  }

  /** Runs an operation that reads. */
  read<Value>(operation: (view: View) => Promise<Value>): Promise<{ value: Value; work: Work }> {
    return this.#count(() => operation({ db: new SqliteSql(this.#db), now: this.#now() }));
  }

  /** How many entries each B-tree has, which is one for each table and index. */
  entries(): Map<string, number> {
    // An inner page of a table with a rowid only repeats keys, to lead to the leaves. That of another tree has entries.
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

/** Bytes that this process has asked the system for and handed to it (proc(5), io); reading this is part of it. */
function processIo(): { read: number; written: number } {
  const text = readFileSync('/proc/self/io', 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(text)?.[1]);
  return { read: field('rchar'), written: field('wchar') };
}
