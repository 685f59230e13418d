/**
 * Copies a database into another one, of either kind: table by table in pages, from one snapshot of the source. Each
 * page is written in one transaction with a marker that says where the next page begins, so that a copy that was killed
 * can go on there. At the end both databases are read again and compared. Only then is the marker deleted; a database
 * with a marker is never opened.
 */
import { InUseError } from '../../model/error.ts';
import type { Sql } from '../sql.ts';
import { checksumOf } from './checksum.ts';
import { fingerprint, type Progress, REFUSAL, readMarker, setMarker } from './marker.ts';
import { type ColumnsOf, countRows, insertRows, readColumns, readPage } from './rows.ts';
import { TABLES, type Table, type Tables } from './tables.ts';

export interface CopyReport {
  tables: { name: string; rows: number; checksum: string }[];
  rows: number;
  /** Rows that this run wrote: fewer when it resumed an interrupted copy. */
  written: number;
}

/** Called after each page: how many rows are done, of how many (of both databases, while they are compared). */
export type OnCopied = (progress: { doing: 'copy' | 'compare'; done: number; total: number }) => void;

/**
 * @param input.target must have the same schema version as the source
 * @param input.force copies although nodes may write into the source: what they write meanwhile is not in the copy
 * @throws InUseError when the source is in use, or the destination holds something else
 * @throws Error with a sentence when the copy is not what the source is
 */
export async function copyTables(input: {
  source: Tables;
  target: Tables;
  force: boolean;
  onCopied: OnCopied;
}): Promise<CopyReport> {
  const { source, target, force, onCopied } = input;
  const inUse = force ? undefined : await source.inUse();
  if (inUse !== undefined) throw new InUseError(inUse);
  return source.read(async (from) => {
    if ((await readMarker(from)) !== undefined) throw new Error(`--from: ${REFUSAL}`);
    const columnsOf = await readColumns(from);
    const counts = await countRows(from);
    const marker = await begin(target, await fingerprint(from, columnsOf, counts));
    const copy = new Copy({ from, target, columnsOf, marker });
    const total = sum(counts.values());
    let done = await copy.alreadyThere();
    let written = 0;
    for (const table of TABLES) {
      for await (const rows of copy.rest(table)) {
        done += rows;
        written += rows;
        onCopied({ doing: 'copy', done, total });
      }
    }
    await target.analyze();
    const tables = await compare({ from, target, columnsOf, onCopied, total });
    await copy.end();
    return { tables, rows: sum(tables.map(({ rows }) => rows)), written };
  });
}

/** Marks an empty database as an unfinished copy, or reads the marker of one. */
async function begin(target: Tables, source: string): Promise<string> {
  const found = await target.read(readMarker);
  if (found !== undefined) {
    if ((JSON.parse(found) as Progress).source === source) return found;
    throw new InUseError(
      'The destination holds an unfinished copy of another database, or of this one before it was changed. ' +
        'Make the destination anew, and copy again',
    );
  }
  const [full] = [...(await target.read(countRows))].find(([, rows]) => rows > 0) ?? [];
  if (full !== undefined) {
    throw new InUseError(
      `The destination is not empty: its table ${full} has rows. Name a database that nothing was ever served from`,
    );
  }
  const becomes = JSON.stringify({ source, tables: {} } satisfies Progress);
  await target.write((db) => setMarker(db, { was: undefined, becomes }));
  return becomes;
}

/** A copy under way, with its marker. */
class Copy {
  readonly #from: Sql;
  readonly #target: Tables;
  readonly #columnsOf: ColumnsOf;
  #marker: string;

  constructor(of: { from: Sql; target: Tables; columnsOf: ColumnsOf; marker: string }) {
    this.#from = of.from;
    this.#target = of.target;
    this.#columnsOf = of.columnsOf;
    this.#marker = of.marker;
  }

  /** The number of rows that an earlier run has written. */
  async alreadyThere(): Promise<number> {
    return sum((await this.#target.read(countRows)).values());
  }

  /** Writes the rest of a table; yields the number of rows of each page. */
  async *rest(table: Table): AsyncGenerator<number> {
    const columns = this.#columnsOf.get(table.name) ?? {};
    for (;;) {
      const { source, tables } = JSON.parse(this.#marker) as Progress;
      const after = tables[table.name];
      if (after === null) return;
      const { rows, next } = await readPage(this.#from, table, columns, after ?? null);
      const becomes = JSON.stringify({
        source,
        tables: { ...tables, [table.name]: next },
      } satisfies Progress);
      await this.#target.write(async (db) => {
        await insertRows(db, table, columns, rows);
        await setMarker(db, { was: this.#marker, becomes });
      });
      this.#marker = becomes;
      yield rows.length;
    }
  }

  end(): Promise<void> {
    return this.#target.write((db) => setMarker(db, { was: this.#marker, becomes: undefined }));
  }
}

/** Reads all of both databases and compares the checksums of their tables. */
async function compare(input: {
  from: Sql;
  target: Tables;
  columnsOf: ColumnsOf;
  onCopied: OnCopied;
  total: number;
}): Promise<CopyReport['tables']> {
  const { from, target, columnsOf, onCopied, total } = input;
  const tables: CopyReport['tables'] = [];
  let done = 0;
  const read = (rows: number) => {
    done += rows;
    onCopied({ doing: 'compare', done, total: 2 * total });
  };
  for (const table of TABLES) {
    const columns = columnsOf.get(table.name) ?? {};
    const [ours, theirs] = await Promise.all([
      checksumOf(from, table, columns, read),
      target.read((copied) => checksumOf(copied, table, columns, read)),
    ]);
    if (ours.rows !== theirs.rows || ours.digits !== theirs.digits) {
      throw new Error(
        `The copy of the table ${table.name} is not what the source holds: ${theirs.rows} rows (${theirs.digits}) ` +
          `instead of ${ours.rows} (${ours.digits}). The copy will not be served: make the destination anew, let ` +
          'nothing write into the source, and copy again',
      );
    }
    tables.push({ name: table.name, rows: ours.rows, checksum: ours.digits });
  }
  return tables;
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((all, one) => all + one, 0);
}
