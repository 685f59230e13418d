/**
 * Copies a database into another one, of either kind: table by table in pages, from one snapshot of the source. Each
 * page is written in one transaction with a marker that says where the next page begins, so that a copy that was killed
 * can go on there. At the end both databases are read again and compared. Only then is the marker deleted; a database
 * with a marker is never opened.
 */
import { InUseError } from '../../model/error.ts';
import { checksumOf } from './checksum.ts';
import { fingerprint, type Progress, REFUSAL } from './marker.ts';
import { type Column, type Page, TABLES, type Table, type TableReader, type Tables } from './tables.ts';

export interface CopyReport {
  tables: { name: string; rows: number; checksum: string }[];
  rows: number;
  /** Rows that this run wrote: fewer when it resumed an interrupted copy. */
  written: number;
}

/** Called after each page: how many rows are done, of how many (of both databases, while they are compared). */
export type OnCopied = (progress: { doing: 'copy' | 'compare'; done: number; total: number }) => void;

type ColumnsOf = ReadonlyMap<string, readonly Column[]>;

/**
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
  if ((await source.marker()) !== undefined) throw new Error(`--from: ${REFUSAL}`);
  const columnsOf = await sameColumns(source, target);
  return source.snapshot(async (reader) => {
    const counts = await countRows(reader);
    const copy = new Copy(
      target,
      await begin(target, await fingerprint(reader, columnsOf, counts), columnsOf),
    );
    const total = sum(counts.values());
    let done = await copy.alreadyThere();
    let written = 0;
    for (const table of TABLES) {
      for await (const rows of copy.rest(reader, table, columnsOf.get(table.name) ?? [])) {
        done += rows;
        written += rows;
        onCopied({ doing: 'copy', done, total });
      }
    }
    await target.analyze();
    const tables = await compare({ reader, target, columnsOf, onCopied, total });
    await copy.end();
    return { tables, rows: sum(tables.map(({ rows }) => rows)), written };
  });
}

/** Marks an empty database as an unfinished copy, or reads the marker of one. */
async function begin(target: Tables, source: string, columnsOf: ColumnsOf): Promise<string> {
  const found = await target.marker();
  if (found !== undefined) {
    if ((JSON.parse(found) as Progress).source === source) return found;
    throw new InUseError(
      'The destination holds an unfinished copy of another database, or of this one before it was changed. ' +
        'Make the destination anew, and copy again',
    );
  }
  const full = await target.snapshot(async (reader) => {
    for (const table of TABLES) {
      const { rows } = await reader.page(table, columnsOf.get(table.name) ?? [], null);
      if (rows.length > 0) return table.name;
    }
    return undefined;
  });
  if (full !== undefined) {
    throw new InUseError(
      `The destination is not empty: its table ${full} has rows. Name a database that nothing was ever served from`,
    );
  }
  const becomes = JSON.stringify({ source, tables: {} } satisfies Progress);
  await target.write({ marker: { was: undefined, becomes } });
  return becomes;
}

/** The target of a copy, with its marker. */
class Copy {
  readonly #target: Tables;
  #marker: string;

  constructor(target: Tables, marker: string) {
    this.#target = target;
    this.#marker = marker;
  }

  /** The number of rows that an earlier run has written. */
  async alreadyThere(): Promise<number> {
    if (Object.keys(this.#progress.tables).length === 0) return 0;
    return sum((await this.#target.snapshot(countRows)).values());
  }

  /** Writes the rest of a table; yields the number of rows of each page. */
  async *rest(reader: TableReader, table: Table, columns: readonly Column[]): AsyncGenerator<number> {
    let after = this.#progress.tables[table.name];
    if (after === null) return;
    for (;;) {
      const { rows, next }: Page = await reader.page(table, columns, after ?? null);
      const { source, tables } = this.#progress;
      await this.#write(JSON.stringify({ source, tables: { ...tables, [table.name]: next } }), {
        table,
        columns,
        rows,
      });
      yield rows.length;
      if (next === null) return;
      after = next;
    }
  }

  end(): Promise<void> {
    return this.#write(undefined);
  }

  get #progress(): Progress {
    return JSON.parse(this.#marker) as Progress;
  }

  async #write(
    becomes: string | undefined,
    insert?: NonNullable<Parameters<Tables['write']>[0]['insert']>,
  ): Promise<void> {
    await this.#target.write({
      marker: { was: this.#marker, becomes },
      ...(insert === undefined || insert.rows.length === 0 ? {} : { insert }),
    });
    this.#marker = becomes ?? this.#marker;
  }
}

/** The columns of every table, which must be the same in both, since both have the same schema version. */
async function sameColumns(source: Tables, target: Tables): Promise<ColumnsOf> {
  const found = new Map<string, readonly Column[]>();
  for (const table of TABLES) {
    const [ours, theirs] = [await source.columns(table), await target.columns(table)];
    if (JSON.stringify(ours) !== JSON.stringify(theirs)) {
      throw new Error(`The two databases have different columns in their table ${table.name}: report this`);
    }
    found.set(table.name, ours);
  }
  return found;
}

async function countRows(reader: TableReader): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of TABLES) counts.set(table.name, await reader.count(table));
  return counts;
}

/** Reads all of both databases and compares the checksums of their tables. */
async function compare(input: {
  reader: TableReader;
  target: Tables;
  columnsOf: ColumnsOf;
  onCopied: OnCopied;
  total: number;
}): Promise<CopyReport['tables']> {
  const { reader, target, columnsOf, onCopied, total } = input;
  const tables: CopyReport['tables'] = [];
  let done = 0;
  const read = (rows: number) => {
    done += rows;
    onCopied({ doing: 'compare', done, total: 2 * total });
  };
  for (const table of TABLES) {
    const columns = columnsOf.get(table.name) ?? [];
    const [ours, theirs] = await Promise.all([
      checksumOf(reader, table, columns, read),
      target.snapshot((copied) => checksumOf(copied, table, columns, read)),
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
