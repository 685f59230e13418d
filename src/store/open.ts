/** A database URL in, a Store out: the only file that names a driver. */
import { join } from 'node:path';
import type { Author } from '../model/audit.ts';
import { NO_QUOTAS, type Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import type { BackupProgress, Inspection, MadeBackup, RestoredBackup, VerifiedBackup } from './backup.ts';
import type { BackupOrigin } from './backup-files.ts';
import { REFUSAL } from './copy/marker.ts';
import { MARKER, type Tables } from './copy/tables.ts';
import { databaseUrlMistake, isPostgres } from './database-url.ts';
import type { SchemaState } from './schema-state.ts';
import type { Store, StoreReader } from './store.ts';

export interface OpenOptions {
  /** The database's own if it is not given: of an embedded one that is `Date.now`. */
  clock?: Clock;
  /** Where the service is reached from outside; asked at every write, because the port may be known late. */
  publicUrl: () => string;
  log: Logger;
  /** What teams may have of which nothing else was said; any number unless told. */
  quotas?: Quotas;
  /** What a commit to SQLite waits for: `FULL` (the default) survives a power cut, `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  /**
   * Whether this process is a server. Of an SQLite database it takes the data directory: a second owner is refused. On
   * PostgreSQL it hears of what others change.
   */
  own?: boolean;
  /** Whether processes on PostgreSQL tell each other of jobs and deliveries by LISTEN and NOTIFY; yes unless told. */
  listen?: boolean;
  /** Connections to PostgreSQL at most; 10 unless told. */
  poolSize?: number;
}

const POOL_SIZE = 10;

/**
 * Opens the database that a URL names, making or migrating it: `sqlite:/absolute/path/flowhook.db`, or
 * `postgres://user:password@host/database`. Throws an Error with a sentence when the URL cannot be used, the schema
 * is newer than this code, another process owns the data directory, or it is a copy that is not finished.
 */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
  const store = await openDriver(url, options);
  try {
    if ((await store.instance.get({ name: MARKER })) !== undefined) throw new Error(REFUSAL);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openDriver(url: string, options: OpenOptions): Promise<Store> {
  const { publicUrl, log, clock, own = false, quotas = NO_QUOTAS } = options;
  const mistake = databaseUrlMistake(url);
  if (mistake !== undefined) throw new Error(`The database URL must be ${mistake}`);
  if (isPostgres(url)) {
    const { openPostgres } = await import('./postgres/postgres.ts');
    const { poolSize = POOL_SIZE, listen = true } = options;
    return openPostgres({ url, clock, publicUrl, quotas, log, poolSize, own, listen });
  }
  const path = pathOf(url);
  // Only here: a thread that opens a reader would wait for all of it.
  const { openSqlite } = await import('./sqlite/sqlite.ts');
  return openSqlite({
    path,
    clock: clock ?? Date.now,
    publicUrl,
    quotas,
    log,
    synchronous: options.synchronous ?? 'FULL',
    own,
  });
}

/**
 * Takes a data directory for this process, as a server on SQLite does with that of its database: two nodes in one would
 * remove each other's kept bodies. Throws an InUseError when another one has it.
 */
export async function ownDirectory(directory: string): Promise<{ release(): void }> {
  const { takeOwnership } = await import('./sqlite/owner.ts');
  return takeOwnership(join(directory, 'flowhook.db'));
}

/** Whether a server has an SQLite database. Changes nothing, and may be asked beside it. */
export async function isOwned(url: string): Promise<boolean> {
  return (await import('./sqlite/owner.ts')).isOwned(pathOf(url));
}

/** Opens a second, smaller door to a database that `openStore` has opened: for a thread that looks things up. */
export async function openReader(url: string): Promise<StoreReader> {
  if (isPostgres(url)) return (await import('./postgres/reader.ts')).openPostgresReader(url);
  const { openSqliteReader } = await import('./sqlite/reader.ts');
  return openSqliteReader(pathOf(url), Date.now);
}

/**
 * Opens the tables of a database for a copy of all that is in them.
 *
 * @param options.make whether they are written, and made where there are none
 */
export async function openTables(url: string, options: { log: Logger; make: boolean }): Promise<Tables> {
  if (isPostgres(url)) {
    const { openPostgresTables } = await import('./postgres/copy-tables.ts');
    return openPostgresTables({ url, ...options });
  }
  const { openSqliteTables } = await import('./sqlite/copy-tables.ts');
  return openSqliteTables({ path: pathOf(url), ...options });
}

/** Looks how far the tables of a database have come, and changes nothing. No file counts as no tables. */
export async function readSchema(url: string): Promise<SchemaState> {
  if (isPostgres(url)) {
    const { lookAtSchema } = await import('./postgres/migrate.ts');
    return lookAtSchema(url);
  }
  const { lookAtSchema } = await import('./sqlite/migrate.ts');
  return lookAtSchema(pathOf(url));
}

/** What is said of PostgreSQL, which has better tools of its own. */
export const POSTGRES_BACKUPS =
  'PostgreSQL is backed up with its own tools: pg_dump, or pg_basebackup with an archive of its log. ' +
  'docs/operate/backup.md has the commands; what was restored is checked by `flowhook backup verify --database postgres://…`';

/**
 * Makes a backup of an SQLite database beside whatever uses it: all that was answered before this call is in it.
 *
 * @param options.signal ends it, and nothing is left
 * @throws InUseError when another one is being made in that directory, Error with a sentence when there is no room
 */
export async function createBackup(
  url: string,
  options: {
    directory: string;
    now: number;
    origin: BackupOrigin;
    signal?: AbortSignal;
    onProgress?: (progress: BackupProgress) => void;
  },
): Promise<MadeBackup> {
  if (isPostgres(url)) throw new Error(POSTGRES_BACKUPS);
  const { backup } = await import('./sqlite/backup.ts');
  const { signal, onProgress, ...task } = options;
  return backup(
    { path: pathOf(url), ...task },
    { ...(signal === undefined ? {} : { signal }), ...(onProgress === undefined ? {} : { onProgress }) },
  );
}

/** Reads all of a backup and says what it holds and what is wrong with it. Blocks this thread meanwhile. */
export async function verifyBackup(file: string): Promise<VerifiedBackup> {
  return (await import('./sqlite/backup-check.ts')).verifyFile(file);
}

/** Reads all of a PostgreSQL database, in one state of it. Rejects with a Problem when it cannot be reached. */
export async function verifyDatabase(url: string): Promise<Inspection> {
  return (await import('./postgres/verify.ts')).verifyDatabase(url);
}

/**
 * Looks for damage beside whatever uses the database. Of PostgreSQL, which watches over its own files, only `full` looks
 * at something: whether versions have the records that they say they have.
 *
 * @returns what is wrong, as sentences; nothing when the signal ended it
 */
export async function findDamage(
  url: string,
  options: { full: boolean; signal: AbortSignal },
): Promise<string[] | undefined> {
  const { full, signal } = options;
  if (isPostgres(url)) return full ? (await verifyDatabase(url)).mistakes : [];
  return (await import('./sqlite/integrity.ts')).findDamage({ path: pathOf(url), full }, signal);
}

/** Whether processes on a PostgreSQL database hear each other at once. */
export async function hearsNotifications(url: string): Promise<boolean> {
  return (await import('./postgres/hearing.ts')).hearsNotifications(url);
}

/** Puts a backup in the place of an SQLite database: see `sqlite/backup-restore.ts`. Blocks this thread meanwhile. */
export async function restoreBackup(
  url: string,
  options: {
    file: string;
    force: boolean;
    now: number;
    author: Author;
    checkKey: (fingerprint: string | null) => void;
  },
): Promise<RestoredBackup> {
  if (isPostgres(url)) throw new Error(POSTGRES_BACKUPS);
  const { restoreBackup: restore } = await import('./sqlite/backup-restore.ts');
  return restore({ path: pathOf(url), ...options });
}

function pathOf(url: string): string {
  return url.slice('sqlite:'.length);
}
