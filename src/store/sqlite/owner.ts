/** Exclusive ownership of a data directory, and a watch over its files. The lock ends with its process. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { InUseError, Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { MOST_LOG_BYTES } from '../store.ts';
import { Database, isBusy, withDatabase } from './database.ts';

/** Ownership lasts until `release`, or until the process ends in any way. */
export interface Ownership {
  release(): void;
}

/**
 * Takes ownership of a database file's directory for this process, by a lock on `owner.db` in this directory. Throws an
 * InUseError if another process is the owner.
 */
export function takeOwnership(databasePath: string): Ownership {
  const directory = dirname(databasePath);
  return holdFile(
    join(directory, 'owner.db'),
    `The data directory ${directory} is in use by another flowhook server. ` +
      'Stop that server first, or set another directory for this one with FLOWHOOK_DATA',
  );
}

/** Whether another process owns the directory of a database file. Changes nothing. */
export function isOwned(databasePath: string): boolean {
  const path = join(dirname(databasePath), 'owner.db');
  if (!existsSync(path)) return false;
  try {
    withDatabase(path, { readOnly: true, busyMs: 0 }, (db) => db.get('select count(*) from sqlite_schema'));
    return false;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return true;
  }
}

/**
 * Holds `BEGIN EXCLUSIVE` on a file. Creates the file if necessary, and leaves it empty.
 *
 * @param refusal the error message if another process has the lock
 * @throws InUseError
 */
export function holdFile(path: string, refusal: string): Ownership {
  let database: Database | undefined;
  try {
    // Opening is inside of the `try`, because it reads the file and may already fail because of the lock.
    database = new Database(path, { busyMs: 0 });
    database.exec('begin exclusive');
  } catch (error) {
    database?.close();
    if (!isBusy(error)) throw error;
    throw new InUseError(refusal, { cause: error });
  }
  const held = database;
  return { release: () => held.close() };
}

/** A write checks the files again if the last check is older than this. A check takes about 10 µs. */
const FRESH_MS = 50;
/** Interval of checks while nothing is written. */
const EVERY_MS = 1_000;

/**
 * Detects that the files of a running server were moved, deleted or replaced, and reports when the log becomes large.
 * Without this check, writes would continue in files that nobody finds. Without `owner.db`, a second server could start
 * on the same data.
 */
export class OwnFiles {
  readonly #path: string;
  readonly #log: Logger;
  readonly #seen = new Map<string, string>();
  /** The last ownership locks the file that exists now. Earlier ones lock files that were deleted or replaced. */
  readonly #owned: Ownership[];
  readonly #timer: NodeJS.Timeout;
  #problem: Problem | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #isLogLarge = false;

  /** Starts watching. Call this once the database is open, so that all its files exist. */
  constructor({ path, ownership, log }: { path: string; ownership: Ownership; log: Logger }) {
    this.#path = path;
    this.#log = log;
    this.#owned = [ownership];
    this.#check();
    this.#timer = setInterval(() => {
      this.#check();
      if (this.#problem === undefined) this.#checkLog();
    }, EVERY_MS).unref();
  }

  /** Why nothing may be written now. Undefined while all files are the ones that were opened. */
  get problem(): Problem | undefined {
    if (performance.now() - this.#checkedAt > FRESH_MS) this.#check();
    return this.#problem;
  }

  release(): void {
    clearInterval(this.#timer);
    for (const ownership of this.#owned) ownership.release();
  }

  /** Never throws, because a timer and every write call it. */
  #check(): void {
    this.#checkedAt = performance.now();
    const sentence = this.#mistake();
    if (sentence === this.#problem?.message) return;
    this.#problem = sentence === undefined ? undefined : new Problem('data_moved', { sentence });
    if (sentence === undefined) this.#log.warn({ path: this.#path }, 'files.back: writing continues');
    else this.#log.error({ path: this.#path, why: sentence }, 'files.gone: nothing is written');
  }

  /** Logs once when the log has become large, and once when it is no longer large. */
  #checkLog(): void {
    const bytes = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > MOST_LOG_BYTES === this.#isLogLarge) return;
    this.#isLogLarge = !this.#isLogLarge;
    if (!this.#isLogLarge) this.#log.info({ bytes }, 'log.reset');
    else this.#log.warn({ bytes }, 'log.large: another program is reading an old state of the database');
  }

  /**
   * Returns a sentence that says what is wrong with the files. Undefined while all files are the ones that were opened.
   */
  #mistake(): string | undefined {
    const owner = join(dirname(this.#path), 'owner.db');
    let file = this.#path;
    try {
      for (file of [this.#path, `${this.#path}-wal`]) if (!this.#isSame(file)) return moved(file);
      file = owner;
      return this.#isSame(owner) ? undefined : this.#retake(owner);
    } catch (error) {
      return unreadable(file, error as Error);
    }
  }

  /**
   * Whether the file is the one that was opened.
   *
   * @throws Error if the file cannot be examined, for example because the directory is now a link to itself
   */
  #isSame(file: string): boolean {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    const identity = found === undefined ? undefined : `${found.dev}:${found.ino}`;
    const first = this.#seen.get(file);
    if (first === undefined && identity !== undefined) this.#seen.set(file, identity);
    return first === undefined || first === identity;
  }

  /** Takes the lock again after `owner.db` was deleted or replaced. If this fails, returns a sentence that says why. */
  #retake(file: string): string | undefined {
    try {
      this.#owned.push(takeOwnership(this.#path));
    } catch (error) {
      const why =
        error instanceof InUseError
          ? 'another server has taken the directory. Stop one of the two servers'
          : `cannot be created again: ${(error as Error).message}. Restart the service`;
      return `The file owner.db of the data directory was deleted or replaced, and ${why}`;
    }
    this.#seen.delete(file);
    this.#isSame(file);
    this.#log.warn({ file }, 'owner.retaken: the file was deleted or replaced while the server was running');
    return undefined;
  }
}

function moved(file: string): string {
  return (
    `The file ${shortName(file)} was moved, deleted or replaced while the server was running, ` +
    'so the server has stopped writing. Put the same file back. To change files of the database, stop the server first'
  );
}

function unreadable(file: string, error: Error): string {
  // Only the reason is quoted, without the path, because callers of the API read this sentence and need not know the
  // directory.
  const [why] = error.message.split(', stat ');
  return (
    `The file ${shortName(file)} of the data directory cannot be read (${why}), so the server has stopped writing. ` +
    'Make the file readable for the server again'
  );
}

/** Returns the file's name in the documentation, even if the database file has a different name. */
function shortName(file: string): string {
  if (file.endsWith('owner.db')) return 'owner.db';
  return file.endsWith('-wal') ? 'flowhook.db-wal' : 'flowhook.db';
}
