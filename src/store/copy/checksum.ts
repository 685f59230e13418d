/** A checksum of a table that depends neither on the order of its rows nor on the kind of database. */
import { hash } from 'node:crypto';
import type { Sql } from '../sql.ts';
import { type Cell, type Columns, type Page, type Place, readPage } from './rows.ts';
import type { Table } from './tables.ts';

const MODULUS = 2n ** 128n;

/** Reads a whole table; calls `onRead` after each page with its number of rows. */
export async function checksumOf(
  db: Sql,
  table: Table,
  columns: Columns,
  onRead: (rows: number) => void,
): Promise<Checksum> {
  const checksum = new Checksum();
  for (let after: Place | null = null; ; ) {
    const { rows, next }: Page = await readPage(db, table, columns, after);
    for (const row of rows) checksum.add(row);
    onRead(rows.length);
    if (next === null) return checksum;
    after = next;
  }
}

/** Counts rows, and sums 128 bits of the SHA-256 of each. */
class Checksum {
  #rows = 0;
  #sum = 0n;

  add(row: readonly Cell[]): void {
    const digest = hash('sha256', canonical(row), 'buffer');
    this.#sum += (digest.readBigUInt64BE(0) << 64n) + digest.readBigUInt64BE(8);
    this.#rows += 1;
  }

  get rows(): number {
    return this.#rows;
  }

  /** 32 hexadecimal digits. */
  get digits(): string {
    return (this.#sum % MODULUS).toString(16).padStart(32, '0');
  }
}

/** A row as text. PostgreSQL cannot store NUL: U+FFFD takes its place there, and so it does here. */
function canonical(row: readonly Cell[]): string {
  return JSON.stringify(
    row.map((cell) =>
      typeof cell === 'string' && cell.includes('\0') ? cell.replaceAll('\0', '\ufffd') : cell,
    ),
  );
}
