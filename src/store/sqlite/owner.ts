/** Exclusive ownership of a data directory, by a lock that dies with its holder, and a watch over its files. */
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { InUseError, Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import { MOST_LOG_BYTES } from '../store.ts';
import { Database, isBusy, withDatabase } from './database.ts';

/** Held until `release`, or until the process ends in any way. */
export interface Ownership {
  release(): void;
}

/**
 * Takes the directory of a database file for this process, by a lock on `owner.db` beside it. Throws an InUseError
 * when another one has it.
 */
export function takeOwnership(databasePath: string): Ownership {
  const directory = dirname(databasePath);
  return holdFile(
    join(directory, 'owner.db'),
    `The data directory ${directory} is in use by another flowhook server. ` +
      'Stop that one first, or give this one a directory of its own with FLOWHOOK_DATA',
  );
}

/** Whether another process owns the directory of a database file. Creates nothing. */
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
 * Holds `BEGIN EXCLUSIVE` on a file, which is created if missing and stays empty.
 *
 * @param refusal the error's sentence when another process holds it
 * @throws InUseError
 */
export function holdFile(path: string, refusal: string): Ownership {
  let database: Database | undefined;
  try {
    // Opening reads the file, so the lock may already be hit here.
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

/** How old the last look may be when something is written: a look takes some 10 µs. */
const FRESH_MS = 50;
/** How often somebody looks while nothing is written. */
const EVERY_MS = 1_000;

/**
 * Notices when the files of a running server are moved away, deleted or replaced, and tells when the log becomes large.
 * Writes would go on in files that nobody finds again, and without `owner.db` a second server could start on the same data.
 */
export class OwnFiles {
  readonly #path: string;
  readonly #log: Logger;
  readonly #seen = new Map<string, string>();
  /** The last one holds the file that is there; earlier ones hold files that are gone. */
  readonly #owned: Ownership[];
  readonly #timer: NodeJS.Timeout;
  #problem: Problem | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isLogLarge = false;

  /** Call it when the database is open, so that all its files are there. */
  constructor({ path, ownership, log }: { path: string; ownership: Ownership; log: Logger }) {
    this.#path = path;
    this.#log = log;
    this.#owned = [ownership];
    this.#look();
    this.#timer = setInterval(() => {
      this.#look();
      if (this.#problem === undefined) this.#lookAtLog();
    }, EVERY_MS).unref();
  }

  /** Why nothing may be written at the moment; undefined while all files are the ones that were opened. */
  get problem(): Problem | undefined {
    if (performance.now() - this.#lookedAt > FRESH_MS) this.#look();
    return this.#problem;
  }

  release(): void {
    clearInterval(this.#timer);
    for (const ownership of this.#owned) ownership.release();
  }

  /** Never throws: it is called by a timer, and by every write. */
  #look(): void {
    this.#lookedAt = performance.now();
    const sentence = this.#mistake();
    if (sentence === this.#problem?.message) return;
    this.#problem = sentence === undefined ? undefined : new Problem('data_moved', { sentence });
    if (sentence === undefined) this.#log.warn({ path: this.#path }, 'files.back: writing goes on');
    else this.#log.error({ path: this.#path, why: sentence }, 'files.gone: nothing is written');
  }

  /** Tells once that the log is large, and once that it no longer is. */
  #lookAtLog(): void {
    const bytes = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > MOST_LOG_BYTES === this.#isLogLarge) return;
    this.#isLogLarge = !this.#isLogLarge;
    if (!this.#isLogLarge) this.#log.info({ bytes }, 'log.reset');
    else this.#log.warn({ bytes }, 'log.large: another program reads an old state of the database');
  }

  /** What is wrong with the files; undefined when they are those that were opened. */
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
   * Whether the file is the one that was there first.
   *
   * @throws when it cannot be looked at, for example because the directory is now a link to itself
   */
  #isSame(file: string): boolean {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    const identity = found === undefined ? undefined : `${found.dev}:${found.ino}`;
    const first = this.#seen.get(file);
    if (first === undefined && identity !== undefined) this.#seen.set(file, identity);
    return first === undefined || first === identity;
  }

  /** Takes the lock again after its file was deleted or replaced; a sentence when another server was quicker. */
  #retake(file: string): string | undefined {
    try {
      this.#owned.push(takeOwnership(this.#path));
    } catch (error) {
      const why =
        error instanceof InUseError
          ? 'another server has taken the directory. Stop one of the two'
          : `cannot be made again: ${(error as Error).message}. Restart the service`;
      return `The file owner.db of the data directory was deleted or replaced, and ${why}`;
    }
    this.#seen.delete(file);
    this.#isSame(file);
    this.#log.warn({ file }, 'owner.retaken: the file was deleted or replaced while the server ran');
    return undefined;
  }
}

function moved(file: string): string {
  return (
    `The file ${shortName(file)} was moved, deleted or replaced while the server ran: nothing is written. ` +
    'Put the same file back, or stop the server before its files are touched'
  );
}

function unreadable(file: string, error: Error): string {
  // Callers read this too, and need not know where the directory is.
  const [why] = error.message.split(', stat ');
  return (
    `The file ${shortName(file)} of the data directory cannot be looked at (${why}): nothing is written. ` +
    'Make it readable again, in its place'
  );
}

/** By the names that the documentation has, whatever the file of the database is called. */
function shortName(file: string): string {
  if (file.endsWith('owner.db')) return 'owner.db';
  return file.endsWith('-wal') ? 'flowhook.db-wal' : 'flowhook.db';
}
