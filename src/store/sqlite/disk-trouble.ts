/** A disk that cannot be written: which errors mean that, what callers are told, and a probe for its recovery. */
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import { CANTOPEN, CORRUPT, type Database, FULL, IOERR, NOTADB, READONLY, resultCode } from './database.ts';

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

/**
 * Turns what SQLite throws about a file or its disk into an error that says which file it is and what to do next. Any
 * other error is returned as it is.
 */
export function explainUnusable(cause: unknown, path: string): unknown {
  const why = cause instanceof Error ? cause.message : '';
  switch (resultCode(cause)) {
    case FULL:
      return new Error(
        `The disk of ${dirname(path)} is full, and opening a database takes a few pages. Free space there, and start again`,
        { cause },
      );
    case CORRUPT:
    case NOTADB:
      return new Error(
        `The database ${path} is damaged, or is no database: ${why}. \`flowhook backup list\` shows its backups, and ` +
          '`flowhook backup restore NAME --force` puts one back; `flowhook doctor` looks at everything else',
        { cause },
      );
    case CANTOPEN:
    case READONLY:
      return new Error(
        `The database ${path} cannot be used: ${why}. Let this user read and write its directory and all files in it, ` +
          '`flowhook.db-wal`, `flowhook.db-shm` and `owner.db` too, or run this as the user of the service',
        { cause },
      );
    default:
      return cause;
  }
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
