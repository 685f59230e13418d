/** How much one transaction may write, because others wait for it: so many rows, and so many bytes, one row at least. */
import type { Sql } from '../sql.ts';

/** What is left to a transaction. */
export interface Room {
  rows: number;
  bytes: number;
}

/** Records that one transaction may write. */
export const MAX_BATCH = 500;
/** Bytes of rows that one transaction should touch. Measured on SQLite: some 15 ms for a record of 1 MiB. */
export const MAX_BATCH_BYTES = 1_048_576;

export function isFull(room: Room): boolean {
  return room.rows <= 0 || room.bytes <= 0;
}

/**
 * How many rows a transaction deals with before it looks whether it has done enough; `most` where their bytes do not
 * matter. SQLite reads all of a row to find it by its key (4 ms for 1 MiB), and writes all of it to change it;
 * PostgreSQL keeps long values apart. One at a time costs SQLite a third of its speed.
 */
export function atATime(db: Sql, most: number): number {
  return db.pick({ sqlite: Math.min(4, most), postgres: most });
}

/**
 * Deals with the rows of a table in their order, as many as there is room for.
 *
 * @param steps.first reads so many of the first rows that have not been dealt with, with the bytes of each
 * @param steps.upTo deals with the rows up to one of them
 */
export async function inParts<Row extends { bytes: number }>(
  db: Sql,
  room: Room,
  steps: { first(rows: number): Promise<Row[]>; upTo(last: Row): Promise<unknown> },
): Promise<void> {
  let isMore = true;
  while (isMore && !isFull(room)) {
    const rows = atATime(db, room.rows);
    const found = await steps.first(rows);
    let last: Row | undefined;
    for (const row of found) {
      if (room.bytes <= 0) break;
      last = row;
      room.rows -= 1;
      room.bytes -= row.bytes;
    }
    if (last !== undefined) await steps.upTo(last);
    isMore = found.length === rows;
  }
}
