/** The row that says that a database is a copy which is not finished, and how far it has come. */
import { createHash } from 'node:crypto';
import { checksumOf } from './checksum.ts';
import { type Column, type Place, TABLES, type TableReader } from './tables.ts';

export interface Progress {
  /** Of the database that is copied, when the copy began. */
  source: string;
  /** Where each table that was begun goes on; null when all of its rows are there. */
  tables: Record<string, Place | null>;
}

/** Why such a database is not opened. */
export const REFUSAL =
  'This database is a copy that is not finished. Run the same `flowhook database copy` once more, which goes on where ' +
  'it was broken off and then compares both; or make the database anew';

/** Tables that change whenever anything happens: each event counts on its team. */
const TELLING = ['instance', 'team', 'api_key'];

/**
 * Tells one state of one database from others without reading all of it.
 *
 * @param counts how many rows each table has
 */
export async function fingerprint(
  reader: TableReader,
  columnsOf: ReadonlyMap<string, readonly Column[]>,
  counts: ReadonlyMap<string, number>,
): Promise<string> {
  const total = createHash('sha256').update(JSON.stringify([...counts]));
  for (const table of TABLES.filter(({ name }) => TELLING.includes(name))) {
    const checksum = await checksumOf(reader, table, columnsOf.get(table.name) ?? [], () => {});
    total.update(`${table.name} ${checksum.rows} ${checksum.digits}\n`);
  }
  return total.digest('hex').slice(0, 32);
}
