/** Restores a backup atomically: at any moment, either the old or the new database is complete and in place. */
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Author, OF_INSTANCE } from '../../model/audit.ts';
import { InUseError } from '../../model/error.ts';
import { toIso } from '../../std/clock.ts';
import { makeDirectory } from '../../std/make-directory.ts';
import { type RestoredBackup, syncToDisk, type VerifiedBackup } from '../backup-files.ts';
import { add } from '../operations/audit.ts';
import { removeUnfinished, verifyFile } from './backup.ts';
import { Database, isBusy, isOutside, withDatabase } from './database.ts';
import { takeOwnership } from './owner.ts';
import { SqliteSql } from './sql.ts';

const RESTORING = '.restoring';
/** The first schema version whose audit log covers all changes. */
const SCHEMA_OF_AUDIT = 10;
const REPLACED = '.replaced-';
/** 2025-01-01, in seconds since 1970. */
const TAG_EPOCH = 1_735_689_600;

export interface RestoreOptions {
  /** The path of the backup. */
  file: string;
  /** The path of the database. */
  path: string;
  /** Whether to replace an existing database. The existing database is kept under a new name. */
  force: boolean;
  now: number;
  /** The author that the audit line in the restored database names. */
  author: Author;
  /** Throws if the backup needs a different encryption key than this installation has. */
  checkKey: (fingerprint: string | null) => void;
}

/**
 * Copies the backup to a file beside the database, checks the copy, and renames it. No other process may use the
 * database meanwhile.
 *
 * @throws InUseError if a server or a command uses the database, or if a database exists and `force` is not set; Error
 *   if the backup is damaged, or newer than this code
 */
export async function restoreBackup(input: RestoreOptions): Promise<RestoredBackup> {
  const { file, path, force, now, author, checkKey } = input;
  const directory = dirname(path);
  makeDirectory(directory);
  const ownership = takeOwnership(path);
  try {
    sweep(path);
    if (existsSync(path) && !force) {
      throw new InUseError(
        `A database already exists: ${path}. Nothing was changed. Use --force to replace the database; the existing ` +
          'file is then renamed, not deleted',
      );
    }
    const copy = path + RESTORING;
    copyFileSync(file, copy, constants.COPYFILE_FICLONE);
    chmodSync(copy, 0o600);
    const restored = check(file, copy);
    checkKey(restored.encryptionKey);
    await change(copy, { file, now, author, hasAudit: restored.schema >= SCHEMA_OF_AUDIT });
    syncToDisk(copy);
    const replaced = putAside(path, now);
    renameSync(copy, path);
    syncToDisk(directory);
    return { ...restored, database: path, replaced };
  } finally {
    removeUnfinished(path + RESTORING);
    ownership.release();
  }
}

/**
 * Removes what a killed restore left behind: its unfinished copy, and the second name of the database that was not
 * replaced.
 */
function sweep(path: string): void {
  removeUnfinished(path + RESTORING);
  const inode = statSync(path, { throwIfNoEntry: false })?.ino;
  for (const name of readdirSync(dirname(path))) {
    const other = join(dirname(path), name);
    const isSecondName = name.startsWith(basename(path) + REPLACED) && statSync(other).ino === inode;
    if (isSecondName) rmSync(other);
  }
}

function check(file: string, copy: string): VerifiedBackup {
  const verified = verifyFile(file, copy);
  if (verified.mistakes.length === 0) return verified;
  const mistakes = verified.mistakes.join('; ');
  throw new Error(`The backup ${file} cannot be restored, and nothing was changed: ${mistakes}`);
}

/** Changes the copy before it is used: new ETags, and an audit line. */
async function change(
  copy: string,
  { file, now, author, hasAudit }: Pick<RestoreOptions, 'file' | 'now' | 'author'> & { hasAudit: boolean },
): Promise<void> {
  const db = new Database(copy);
  try {
    // The file may be in WAL mode, like the database that it was copied from. No data may be left in a log beside the
    // file.
    db.get('pragma journal_mode = delete');
    changeEtags(db, now);
    if (!hasAudit) return;

    const target = { kind: 'backup' as const, id: basename(file) };
    await add(
      { db: new SqliteSql(db), now, dues: new Map() },
      { author, change: { teamId: OF_INSTANCE, action: 'backups.restore', target, summary: '' } },
    );
  } finally {
    db.close();
  }
}

/**
 * Changes all ETags. After a restore, new versions get numbers that earlier versions with other content had, and
 * clients may have cached the earlier versions. ETags also contain `erasures`, so this count is raised above any value
 * that it ever had.
 */
function changeEtags(db: Database, now: number): void {
  const count = Math.floor(now / 1_000) - TAG_EPOCH;
  db.run('update workflow set erasures = max(erasures + 1, ?)', count);
}

/**
 * Gives the existing database a second name, and leaves no log beside it. SQLite would apply such a log to the restored
 * database. Returns the second name, or null if there was no database.
 */
function putAside(path: string, now: number): string | null {
  const aside = `${path}${REPLACED}${toIso(now).slice(0, 19).replaceAll(':', '')}Z`;
  const isWhole = existsSync(path) && foldLog(path);
  if (!isWhole) {
    for (const log of ['-wal', '-journal']) {
      if (existsSync(path + log)) renameSync(path + log, aside + log);
    }
    rmSync(`${path}-shm`, { force: true });
  }
  if (!existsSync(path)) return null;
  rmSync(aside, { force: true });
  try {
    linkSync(path, aside);
  } catch {
    // The file is copied if the file system does not support hard links.
    copyFileSync(path, aside);
    syncToDisk(aside);
  }
  return aside;
}

/**
 * Writes the log into the database. Returns false if the files are too damaged for it. Damage may be the reason for the
 * restore, so it is not an error.
 */
function foldLog(path: string): boolean {
  try {
    // The log can be removed only while no other process has the file open.
    withDatabase(path, { busyMs: 0 }, (db) => db.get('pragma journal_mode = delete'));
    return true;
  } catch (error) {
    if (isBusy(error)) {
      throw new InUseError(`A command is using the database ${path}. Try again when the command has ended`, {
        cause: error,
      });
    }
    if (!isOutside(error)) throw error;
    return false;
  }
}
