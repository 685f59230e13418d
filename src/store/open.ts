/**
 * Opens stores, and contains everything else that depends on the kind of database. This is the only file that imports a
 * driver.
 */
import { join } from 'node:path';
import { NO_QUOTAS, type Quotas } from '../model/quota.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import type { Inspection, MadeBackup, RestoredBackup, VerifiedBackup } from './backup-files.ts';
import { MARKER, refusalOf, type Tables } from './copy/tables.ts';
import { databaseUrlMistake, isPostgres } from './database-url.ts';
import type { SchemaState } from './migrations.ts';
import type { Distribution } from './postgres/distribute.ts';
import type { BackupOptions } from './sqlite/backup.ts';
import type { RestoreOptions } from './sqlite/backup-restore.ts';
import type { Store, StoreReader } from './store.ts';

export interface OpenOptions {
  /** The clock of the store. The default is the database's clock; on SQLite that is `Date.now`. */
  clock?: Clock;
  /**
   * Returns the service's external URL. Called for every write, because the port may be unknown when the store is
   * opened.
   */
  publicUrl: () => string;
  log: Logger;
  /** Quotas of teams that have no quotas of their own (default: unlimited). */
  quotas?: Quotas;
  /**
   * SQLite's `synchronous` setting: with `FULL` (default), a committed change survives a power failure; `OFF` is for
   * tests.
   */
  synchronous?: 'FULL' | 'OFF';
  /**
   * Whether this process is a server. On SQLite, a server owns the data directory, and a second server fails to start.
   * On PostgreSQL, a server is notified of changes made by other nodes.
   */
  own?: boolean;
  /** Whether nodes on PostgreSQL notify each other of jobs and deliveries by LISTEN and NOTIFY (default: true). */
  listen?: boolean;
  /** Maximum number of connections to PostgreSQL (default: 10). */
  poolSize?: number;
}

const POOL_SIZE = 10;

/**
 * Opens the database that a URL names (`sqlite:/absolute/path/flowhook.db` or
 * `postgres://user:password@host/database`), and creates or migrates its tables. Throws an Error if the URL is invalid,
 * if the schema is newer than this code, if another process owns the data directory, or if the database is an
 * unfinished copy.
 */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
  const store = await openDriver(url, options);
  try {
    const marker = await store.instance.get({ name: MARKER });
    if (marker !== undefined) throw new Error(refusalOf(marker));
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
  // The driver is imported only here, because threads that open a reader would otherwise load all of it.
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
 * Takes ownership of a data directory, as a server on SQLite does for its database. Without ownership, two nodes that
 * share a data directory would delete each other's cached response bodies. Throws an InUseError if another process owns
 * it.
 */
export async function ownDirectory(directory: string): Promise<{ release(): void }> {
  const { takeOwnership } = await import('./sqlite/owner.ts');
  return takeOwnership(join(directory, 'flowhook.db'));
}

/** Whether a server owns an SQLite database. The check changes nothing. */
export async function isOwned(url: string): Promise<boolean> {
  return (await import('./sqlite/owner.ts')).isOwned(pathOf(url));
}

/**
 * If an SQLite file is damaged or inaccessible, adds the file and the next step to the error. Returns other errors
 * unchanged.
 */
export async function explainFailure(url: string, error: unknown): Promise<unknown> {
  if (isPostgres(url)) return error;
  return (await import('./sqlite/disk-trouble.ts')).explainUnusable(error, pathOf(url));
}

/** Opens a reader for a worker thread. `openStore` must have opened the database before. */
export async function openReader(url: string): Promise<StoreReader> {
  if (isPostgres(url)) return (await import('./postgres/reader.ts')).openPostgresReader(url);
  const { openSqliteReader } = await import('./sqlite/reader.ts');
  return openSqliteReader(pathOf(url), Date.now);
}

/**
 * Opens the tables of a database in order to copy all rows from or into it.
 *
 * @param options.make whether the database is the target of the copy, which is created or migrated, and is writable
 */
export async function openTables(url: string, options: { log: Logger; make: boolean }): Promise<Tables> {
  if (isPostgres(url)) {
    const { openPostgresTables } = await import('./postgres/whole.ts');
    return openPostgresTables({ url, ...options });
  }
  const { openSqliteTables } = await import('./sqlite/copy-tables.ts');
  return openSqliteTables({ path: pathOf(url), ...options });
}

/** Opens a PostgreSQL database in order to distribute its tables over a cluster, or to bring them back. */
export async function openDistribution(url: string, options: { log: Logger }): Promise<Distribution> {
  return (await import('./postgres/distribute.ts')).openDistribution({ url, ...options });
}

/** Reads the schema version of a database without changing the database. A missing file has version 0. */
export async function readSchema(url: string): Promise<SchemaState> {
  if (isPostgres(url)) {
    const { lookAtSchema } = await import('./postgres/migrate.ts');
    return lookAtSchema(url);
  }
  const { lookAtSchema } = await import('./sqlite/migrate.ts');
  return lookAtSchema(pathOf(url));
}

/** The error message when a command tries to back up or restore PostgreSQL. */
export const POSTGRES_BACKUPS =
  "Back up PostgreSQL with PostgreSQL's own tools: pg_dump, or pg_basebackup with archived write-ahead logs. " +
  'The commands are at /docs/guide/operate/backup.html on a running server. Check a restored database with `flowhook backup verify --database postgres://…`';

/**
 * Makes a backup of an SQLite database, which may be in use. The backup contains every change acknowledged before this
 * call.
 *
 * @throws InUseError while another backup is being made in the same directory, Error if there is not enough disk space
 */
export async function createBackup(url: string, options: Omit<BackupOptions, 'path'>): Promise<MadeBackup> {
  if (isPostgres(url)) throw new Error(POSTGRES_BACKUPS);
  const { backup } = await import('./sqlite/backup.ts');
  return backup({ path: pathOf(url), ...options }).catch(async (error) => {
    throw await explainFailure(url, error);
  });
}

/** Verifies a whole backup file. Blocks this thread. */
export async function verifyBackup(file: string): Promise<VerifiedBackup> {
  return (await import('./sqlite/backup.ts')).verifyFile(file);
}

/** Verifies a whole PostgreSQL database, in one snapshot. Rejects with a Problem if it cannot be reached. */
export async function verifyDatabase(url: string): Promise<Inspection> {
  return (await import('./postgres/whole.ts')).verifyDatabase(url);
}

/**
 * Checks a database, which may be in use, for damage. PostgreSQL checks its own files, so on PostgreSQL nothing is
 * checked unless `full` is set: `full` checks whether each current version has as many records as it should.
 *
 * @returns problems, as sentences; undefined if the signal aborted the check
 */
export async function findDamage(
  url: string,
  options: { full: boolean; signal: AbortSignal },
): Promise<string[] | undefined> {
  const { full, signal } = options;
  if (isPostgres(url)) return full ? (await verifyDatabase(url)).mistakes : [];
  return (await import('./sqlite/file-tasks.ts')).findDamage({ path: pathOf(url), full }, signal);
}

/**
 * Whether LISTEN and NOTIFY work on a PostgreSQL database. They may not work if a connection pooler drops
 * notifications.
 */
export async function hearsNotifications(url: string): Promise<boolean> {
  return (await import('./postgres/notifications.ts')).hearsNotifications(url);
}

/** Replaces an SQLite database with a backup (see `sqlite/backup-restore.ts`). Blocks this thread. */
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
