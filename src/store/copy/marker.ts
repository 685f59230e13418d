/** The marker of an unfinished copy: which database is being copied, and how far the copy is. */
import { createHash } from 'node:crypto';
import type { Sql } from '../sql.ts';
import { checksumOf } from './checksum.ts';
import type { ColumnsOf, Place } from './rows.ts';
import { MARKER, TABLES } from './tables.ts';

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

export async function readMarker(db: Sql): Promise<string | undefined> {
  return (await db.get<{ value: string }>('select value from instance where name = $1', MARKER))?.value;
}

/**
 * Writes the marker, or deletes it when it `becomes` undefined.
 *
 * @throws Error when it is not what it was
 */
export async function setMarker(
  db: Sql,
  { was, becomes }: { was: string | undefined; becomes: string | undefined },
): Promise<void> {
  let changed: number;
  if (was === undefined) {
    const sql = 'insert into instance (name, value) values ($1, $2) on conflict do nothing';
    changed = await db.run(sql, MARKER, becomes ?? '');
  } else if (becomes === undefined) {
    changed = await db.run('delete from instance where name = $1 and value = $2', MARKER, was);
  } else {
    changed = await db.run(
      'update instance set value = $3 where name = $1 and value = $2',
      MARKER,
      was,
      becomes,
    );
  }
  if (changed === 1) return;
  throw new Error(
    'Another `flowhook database copy` writes into the same database. Let that one end, or end it, and run this again',
  );
}

/** Tables in which every later change of a database shows. */
const TELLING = ['instance', 'team', 'api_key'];

/**
 * Identifies one state of one database without reading all of it.
 *
 * @param counts how many rows each table has
 */
export async function fingerprint(
  db: Sql,
  columnsOf: ColumnsOf,
  counts: ReadonlyMap<string, number>,
): Promise<string> {
  const total = createHash('sha256').update(JSON.stringify([...counts]));
  for (const table of TABLES.filter(({ name }) => TELLING.includes(name))) {
    const checksum = await checksumOf(db, table, columnsOf.get(table.name) ?? {}, () => {});
    total.update(`${table.name} ${checksum.rows} ${checksum.digits}\n`);
  }
  return total.digest('hex').slice(0, 32);
}
