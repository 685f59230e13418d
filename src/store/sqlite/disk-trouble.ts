/** A disk that takes nothing more: what is said of it, and how it is found out that it does again. */
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Database } from './database.ts';

/** Primary result codes: https://sqlite.org/rescode.html */
const READONLY = 8;
const IOERR = 10;
const FULL = 13;

/** Codes of refusals that say that nothing can be written, whatever it is. */
export type DiskTrouble = 'disk_full' | 'disk_failed';

/** What a write is refused with that could not be made because of something outside of it. */
export function refusalOf(cause: unknown): Problem {
  const code = Number((cause as { errcode?: unknown } | null)?.errcode) & 0xff;
  if (code === FULL) return new Problem('disk_full', { cause });
  if (code === IOERR || code === READONLY) return new Problem('disk_failed', { cause });
  return new Problem('database_unavailable', { cause });
}

export function troubleOf({ code }: Problem): DiskTrouble | undefined {
  return code === 'disk_full' || code === 'disk_failed' ? code : undefined;
}

/** An error of opening a database, as a sentence where it speaks of the disk. */
export function unopened(cause: unknown, path: string): unknown {
  const code = Number((cause as { errcode?: unknown } | null)?.errcode) & 0xff;
  if (code !== FULL) return cause;
  const sentence = `The disk of ${dirname(path)} is full, and opening a database takes a few pages. Free space there, and start again`;
  return new Error(sentence, { cause });
}

/** So much must fit before the disk counts as well: a single page may find room in the log of a full one. */
const PROBE_BYTES = 262_144;

/** Whether something can be written again: tries it, and takes it away. */
export function canWrite(db: Database): boolean {
  try {
    db.run("insert or replace into instance (name, value) values ('disk_probe', ?)", 'x'.repeat(PROBE_BYTES));
    db.run("delete from instance where name = 'disk_probe'");
    return true;
  } catch {
    if (db.inTransaction) db.run('rollback');
    return false;
  }
}
