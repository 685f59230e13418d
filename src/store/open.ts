/** Opens stores and does whatever else depends on the kind of database: the only file that imports a driver. */
import { join } from 'node:path';
import { NO_QUOTAS, type Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import type { Inspection, MadeBackup, RestoredBackup, VerifiedBackup } from './backup-files.ts';
import { MARKER, REFUSAL, type Tables } from './copy/tables.ts';
import { databaseUrlMistake, isPostgres } from './database-url.ts';
import type { SchemaState } from './migrations.ts';
import type { BackupOptions } from './sqlite/backup.ts';
import type { RestoreOptions } from './sqlite/backup-restore.ts';
import type { Store, StoreReader } from './store.ts';

export interface OpenOptions {
  /** By default the database's clock; on SQLite that is `Date.now`. */
  clock?: Clock;
  /** The service's external URL; called at every write, because the port may be known late. */
  publicUrl: () => string;
  log: Logger;
  /** For teams without quotas of their own; unlimited by default. */
  quotas?: Quotas;
  /** What a commit to SQLite waits for: `FULL` (the default) survives a power cut, `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  /**
   * Whether this process is a server. On SQLite it then owns the data directory, and a second owner is refused; on
   * PostgreSQL it is notified of what other nodes change.
   */
  own?: boolean;
  /** Whether nodes on PostgreSQL notify each other of jobs and deliveries by LISTEN and NOTIFY; true by default. */
  listen?: boolean;
  /** Maximum number of connections to PostgreSQL; 10 by default. */
  poolSize?: number;
}

const POOL_SIZE = 10;

/**
 * Opens the database that a URL names, and creates or migrates it: `sqlite:/absolute/path/flowhook.db`, or
 * `postgres://user:password@host/database`. Throws an Error with a sentence when the URL is invalid, the schema is
 * newer than this code, another process owns the data directory, or the database is an unfinished copy.
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
  // Imported only here, because threads that open a reader would have to load all of it.
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
 * Takes ownership of a data directory, as a server on SQLite does with its database's: two nodes sharing one would
 * remove each other's cached bodies. Throws an InUseError when another process owns it.
 */
export async function ownDirectory(directory: string): Promise<{ release(): void }> {
  const { takeOwnership } = await import('./sqlite/owner.ts');
  return takeOwnership(join(directory, 'flowhook.db'));
}

/** Whether a server owns an SQLite database. Changes nothing. */
export async function isOwned(url: string): Promise<boolean> {
  return (await import('./sqlite/owner.ts')).isOwned(pathOf(url));
}

/** Makes an error of a damaged or inaccessible SQLite file say which file it is and what to do; others stay as they are. */
export async function explainFailure(url: string, error: unknown): Promise<unknown> {
  if (isPostgres(url)) return error;
  return (await import('./sqlite/disk-trouble.ts')).explainUnusable(error, pathOf(url));
}

/** Opens a reader for a worker thread on a database that `openStore` has opened. */
export async function openReader(url: string): Promise<StoreReader> {
  if (isPostgres(url)) return (await import('./postgres/reader.ts')).openPostgresReader(url);
  const { openSqliteReader } = await import('./sqlite/reader.ts');
  return openSqliteReader(pathOf(url), Date.now);
}

/**
 * Opens the tables of a database for copying all of its rows.
 *
 * @param options.make whether to write to it, and create or migrate its tables
 */
export async function openTables(url: string, options: { log: Logger; make: boolean }): Promise<Tables> {
  if (isPostgres(url)) {
    const { openPostgresTables } = await import('./postgres/whole.ts');
    return openPostgresTables({ url, ...options });
  }
  const { openSqliteTables } = await import('./sqlite/copy-tables.ts');
  return openSqliteTables({ path: pathOf(url), ...options });
}

/** Reads the schema version of a database and changes nothing. A missing file counts as version 0. */
export async function readSchema(url: string): Promise<SchemaState> {
  if (isPostgres(url)) {
    const { lookAtSchema } = await import('./postgres/migrate.ts');
    return lookAtSchema(url);
  }
  const { lookAtSchema } = await import('./sqlite/migrate.ts');
  return lookAtSchema(pathOf(url));
}

/** The answer to a request for a backup of PostgreSQL. */
export const POSTGRES_BACKUPS =
  'PostgreSQL is backed up with its own tools: pg_dump, or pg_basebackup with an archive of its log. ' +
  'docs/operate/backup.md has the commands; what was restored is checked by `flowhook backup verify --database postgres://…`';

/**
 * Makes a backup of an SQLite database, which may be in use: everything acknowledged before this call is in it.
 *
 * @throws InUseError when another one is being made in that directory, Error with a sentence when there is no room
 */
export async function createBackup(url: string, options: Omit<BackupOptions, 'path'>): Promise<MadeBackup> {
  if (isPostgres(url)) throw new Error(POSTGRES_BACKUPS);
  const { backup } = await import('./sqlite/backup.ts');
  return backup({ path: pathOf(url), ...options }).catch(async (error) => {
    throw await explainFailure(url, error);
  });
}

/** Verifies a whole backup file. Blocks this thread meanwhile. */
export async function verifyBackup(file: string): Promise<VerifiedBackup> {
  return (await import('./sqlite/backup.ts')).verifyFile(file);
}

/** Verifies a whole PostgreSQL database, in one snapshot. Rejects with a Problem when it cannot be reached. */
export async function verifyDatabase(url: string): Promise<Inspection> {
  return (await import('./postgres/whole.ts')).verifyDatabase(url);
}

/**
 * Checks a database, which may be in use, for damage. On PostgreSQL, which checks its own files, only `full` does
 * anything: it checks whether versions have as many records as they should.
 *
 * @returns what is wrong, as sentences; undefined if the signal ended it
 */
export async function findDamage(
  url: string,
  options: { full: boolean; signal: AbortSignal },
): Promise<string[] | undefined> {
  const { full, signal } = options;
  if (isPostgres(url)) return full ? (await verifyDatabase(url)).mistakes : [];
  return (await import('./sqlite/file-tasks.ts')).findDamage({ path: pathOf(url), full }, signal);
}

/** Whether LISTEN and NOTIFY work on a PostgreSQL database (a pooler may swallow them). */
export async function hearsNotifications(url: string): Promise<boolean> {
  return (await import('./postgres/notifications.ts')).hearsNotifications(url);
}

/** Replaces an SQLite database by a backup: see `sqlite/backup-restore.ts`. Blocks this thread meanwhile. */
export async function restoreBackup(
  url: string,
  options: Omit<RestoreOptions, 'path'>,
): Promise<RestoredBackup> {
  if (isPostgres(url)) throw new Error(POSTGRES_BACKUPS);
  const { restoreBackup: restore } = await import('./sqlite/backup-restore.ts');
  return restore({ path: pathOf(url), ...options });
}

function pathOf(url: string): string {
  return url.slice('sqlite:'.length);
}
