/** A database URL in, a Store out: the only file that names a driver. */
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../std/clock.ts';
import { openSqliteReader } from './sqlite/reader.ts';
import type { Store, StoreReader } from './store.ts';

export interface OpenOptions {
  /** `Date.now` if it is not given. */
  clock?: Clock;
  /** Where the service is reached from outside; asked at every write, because the port may be known late. */
  publicUrl: () => string;
  log: Logger;
  /** What a commit waits for: `FULL` (the default) survives a power cut, `OFF` is for tests. */
  synchronous?: 'FULL' | 'OFF';
  /** Takes the data directory for this process; a second owner is refused. */
  own?: boolean;
}

/**
 * Opens the database that a URL names, making or migrating it: `sqlite:/absolute/path/flowhook.db`. Throws an
 * Error with a sentence when the URL cannot be used, the schema is newer than this code, or another process owns
 * the data directory.
 */
export async function openStore(url: string, options: OpenOptions): Promise<Store> {
  // Only here: a thread that opens a reader would wait for all of it.
  const { openSqlite } = await import('./sqlite/sqlite.ts');
  return openSqlite({
    path: pathOf(url),
    clock: options.clock ?? Date.now,
    publicUrl: options.publicUrl,
    log: options.log,
    synchronous: options.synchronous ?? 'FULL',
    own: options.own ?? false,
  });
}

/** Opens a second, smaller door to a database that `openStore` has opened: for a thread that looks things up. */
export function openReader(url: string): StoreReader {
  return openSqliteReader(pathOf(url), Date.now);
}

function pathOf(url: string): string {
  const scheme = url.slice(0, url.indexOf(':'));
  if (scheme === 'postgres' || scheme === 'postgresql') {
    throw new Error(
      'This version of flowhook stores its data in SQLite only. Remove FLOWHOOK_DATABASE, ' +
        'or set it to sqlite:/absolute/path/flowhook.db',
    );
  }
  const path = url.slice('sqlite:'.length);
  if (scheme !== 'sqlite' || !path.startsWith('/')) {
    // The URL itself stays out of the sentence: it may hold a password.
    throw new Error('The database URL must have the form sqlite:/absolute/path/flowhook.db');
  }
  return path;
}
