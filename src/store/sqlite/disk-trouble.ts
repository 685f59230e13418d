/** A disk that cannot be written: which errors mean that, what callers are told, and a probe for its recovery. */
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import { type Database, FULL, IOERR, READONLY, resultCode } from './database.ts';

/** The codes of problems that affect every write. */
export type DiskTrouble = 'disk_full' | 'disk_failed';

/** The problem that a batch of writes is refused with when it failed as a whole. */
export function refusalOf(cause: unknown): Problem {
  const code = resultCode(cause);
  if (code === FULL) return new Problem('disk_full', { cause });
  if (code === IOERR || code === READONLY) return new Problem('disk_failed', { cause });
  return new Problem('database_unavailable', { cause });
}

export function troubleOf({ code }: Problem): DiskTrouble | undefined {
  return code === 'disk_full' || code === 'disk_failed' ? code : undefined;
}

/** Turns an error of opening a database into one that says what to do, if the disk is full. */
export function explainFullDisk(cause: unknown, path: string): unknown {
  if (resultCode(cause) !== FULL) return cause;
  const sentence = `The disk of ${dirname(path)} is full, and opening a database takes a few pages. Free space there, and start again`;
  return new Error(sentence, { cause });
}

/** How much must fit before the disk counts as recovered: the WAL may have room for a page even on a full disk. */
const PROBE_BYTES = 262_144;

/** Whether something can be written: writes it, and deletes it again. */
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
