/**
 * Copies a database into another one, of either kind: table by table in pages, from one snapshot of the source, each page
 * in a transaction of its own. At the end both databases are read again and compared. A marker is set at the beginning
 * and deleted only after the comparison; a database with a marker is never opened.
 */
import { hash } from 'node:crypto';
import { InUseError } from '../../model/error.ts';
import type { Sql } from '../sql.ts';
import {
  type Cell,
  type Columns,
  type ColumnsOf,
  countRows,
  insertRows,
  type Page,
  type Place,
  readColumns,
  readPage,
} from './rows.ts';
import { MARKER, refusalOf, TABLES, type Table, type Tables } from './tables.ts';

export interface CopyReport {
  tables: { name: string; rows: number; checksum: string }[];
  rows: number;
}

/** Called after each page with the number of finished rows and of all rows (of both databases during the comparison). */
export type OnCopied = (progress: { doing: 'copy' | 'compare'; done: number; total: number }) => void;

/**
 * @param input.target must have the same schema version as the source
 * @param input.force copies even if nodes may be writing to the source: writes during the copy are left out
 * @throws InUseError when the source is in use, or the target is not empty
 * @throws Error when the copy differs from the source
 */
export async function copyTables(input: {
  source: Tables;
  target: Tables;
  force: boolean;
  onCopied: OnCopied;
}): Promise<CopyReport> {
  const { source, target, force, onCopied } = input;
  const inUse = force ? undefined : await source.inUse();
  if (inUse !== undefined) {
    throw new InUseError(
      `${inUse}, and copy again. Use --force to copy the database anyway, without changes that nodes make during the copy`,
    );
  }
  return source.read(async (from) => {
    const marker = await markerOf(from);
    if (marker !== undefined) throw new Error(`--from: ${refusalOf(marker)}`);
    const columnsOf = await readColumns(from);
    const total = sum((await countRows(from)).values());
    await begin(target);
    let done = 0;
    for (const table of TABLES) {
      const columns = columnsOf.get(table.name) ?? {};
      for await (const rows of pagesOf(from, table, columns)) {
        await target.write((db) => insertRows(db, table, columns, rows));
        done += rows.length;
        onCopied({ doing: 'copy', done, total });
      }
    }
    await target.analyze();
    const tables = await compare({ from, target, columnsOf, onCopied, total });
    await target.write(async (db) => {
      await db.run('delete from instance where name = $1', MARKER);
    });
    return { tables, rows: sum(tables.map(({ rows }) => rows)) };
  });
}

async function markerOf(db: Sql): Promise<string | undefined> {
  return (await db.get<{ value: string }>('select value from instance where name = $1', MARKER))?.value;
}

/** Marks an empty database as an unfinished copy. */
async function begin(target: Tables): Promise<void> {
  const marker = await target.read(markerOf);
  const [full] = [...(await target.read(countRows))].find(([, rows]) => rows > 0) ?? [];
  const again = 'Create the target again, and repeat the copy';
  if (marker !== undefined) throw new InUseError(`The target contains an unfinished copy. ${again}`);
  if (full !== undefined) {
    throw new InUseError(
      `The target is not empty: its table ${full} has rows. Use a database that no server has ever used`,
    );
  }
  await target.write(async (db) => {
    const set = await db.run(
      `insert into instance (name, value) values ($1, '') on conflict do nothing`,
      MARKER,
    );
    if (set === 0) throw new InUseError('Another `flowhook database copy` is writing to this database');
  });
}

async function* pagesOf(db: Sql, table: Table, columns: Columns): AsyncGenerator<Cell[][]> {
  for (let after: Place | null = null; ; ) {
    const { rows, next }: Page = await readPage(db, table, columns, after);
    yield rows;
    if (next === null) return;
    after = next;
  }
}

/** Reads both databases completely and compares the checksums of their tables. */
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
        `The copy of the table ${table.name} differs from the source: ${theirs.rows} rows (${theirs.digits}) instead of ` +
          `${ours.rows} (${ours.digits}). No server will open the copy. Create the target again, make sure that nothing ` +
          'writes to the source, and repeat the copy',
      );
    }
    tables.push({ name: table.name, rows: ours.rows, checksum: ours.digits });
  }
  return tables;
}

/** A checksum of a whole table that depends neither on the order of its rows nor on the kind of database. */
async function checksumOf(
  db: Sql,
  table: Table,
  columns: Columns,
  onRead: (rows: number) => void,
): Promise<{ rows: number; digits: string }> {
  let count = 0;
  let digest = 0n;
  for await (const rows of pagesOf(db, table, columns)) {
    for (const row of rows) {
      // The sum of 128 bits of the SHA-256 of each row.
      const bytes = hash('sha256', canonical(row), 'buffer');
      digest += (bytes.readBigUInt64BE(0) << 64n) + bytes.readBigUInt64BE(8);
    }
    count += rows.length;
    onRead(rows.length);
  }
  return { rows: count, digits: (digest % MODULUS).toString(16).padStart(32, '0') };
}

const MODULUS = 2n ** 128n;

/** A row as text. PostgreSQL cannot store NUL: it stores U+FFFD instead, so this replaces NUL in the same way. */
function canonical(row: readonly Cell[]): string {
  return JSON.stringify(
    row.map((cell) =>
      typeof cell === 'string' && cell.includes('\0') ? cell.replaceAll('\0', '\ufffd') : cell,
    ),
  );
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((all, one) => all + one, 0);
}
