/** The marker of an unfinished copy: which database is being copied, and how far the copy is. */
import { createHash } from 'node:crypto';
import { checksumOf } from './checksum.ts';
import { type Column, type Place, TABLES, type TableReader } from './tables.ts';

export interface Progress {
  /** The fingerprint of the source when the copy began. */
  source: string;
  /** Where each table that was begun goes on; null when it is complete. */
  tables: Record<string, Place | null>;
}

/** Why a database with a marker is not opened. */
export const REFUSAL =
  'This database is a copy that is not finished. Run the same `flowhook database copy` once more, which goes on where ' +
  'it was broken off and then compares both; or make the database anew';

/** Tables in which every later change of a database shows. */
const TELLING = ['instance', 'team', 'api_key'];

/**
 * Identifies one state of one database without reading all of it.
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
