/** Exclusive ownership of a data directory: a file lock that the operating system frees when its holder dies. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { InUseError } from '../../model/error.ts';
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
