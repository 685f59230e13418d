/** Handles disks that cannot be written: error codes, sentences for callers, and a probe for recovery. */
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import { CANTOPEN, CORRUPT, type Database, FULL, IOERR, NOTADB, READONLY, resultCode } from './database.ts';

/** Codes of Problems that affect every write. */
export type DiskTrouble = 'disk_full' | 'disk_failed';

/** Returns the Problem for all calls of a batch that failed as a whole. */
export function refusalOf(cause: unknown): Problem {
  const code = resultCode(cause);
  if (code === FULL) return new Problem('disk_full', { cause });
  if (code === IOERR || code === READONLY) return new Problem('disk_failed', { cause });
  return new Problem('database_unavailable', { cause });
}

export function troubleOf({ code }: Problem): DiskTrouble | undefined {
  return code === 'disk_full' || code === 'disk_failed' ? code : undefined;
}

/**
 * Turns an error of SQLite about a file or its disk into an error that names the file and the next step. Returns any
 * other error unchanged.
 */
export function explainUnusable(cause: unknown, path: string): unknown {
  const why = cause instanceof Error ? cause.message : '';
  switch (resultCode(cause)) {
    case FULL:
      return new Error(
        `The database cannot be opened, because the disk that contains ${dirname(path)} is full. ` +
          'Free some space on this disk, and start again',
        { cause },
      );
    case CORRUPT:
    case NOTADB:
      return new Error(
        `The database ${path} is damaged or not a database: ${why}. \`flowhook backup list\` lists its backups, ` +
          '`flowhook backup restore NAME --force` restores one, and `flowhook doctor` checks everything else',
        { cause },
      );
    case CANTOPEN:
    case READONLY:
      return new Error(
        `The database ${path} cannot be used: ${why}. Allow this user to read and write its directory and all files in it ` +
          '(also `flowhook.db-wal`, `flowhook.db-shm` and `owner.db`), or run this as the user of the service',
        { cause },
      );
    default:
      return cause;
  }
}

/**
 * Number of bytes that must fit before the disk counts as recovered. A smaller probe is not enough, because even on a
 * full disk the WAL may have room for a page.
 */
const PROBE_BYTES = 262_144;

/** Whether the disk can be written. Writes a probe, and deletes it again. */
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
