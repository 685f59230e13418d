/** Locates the database file and prepares the data directory, before anything else is tried. */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';

/** The file of the database; undefined when the URL names no file. */
export function databaseFile({ databaseUrl }: Config): string | undefined {
  return databaseUrl.startsWith('sqlite:/') ? databaseUrl.slice('sqlite:'.length) : undefined;
}

/** Whether there is no such file. False for one that this user may not look at: opening it tells why. */
export function isMissing(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

/**
 * Creates the data directory if it is missing.
 *
 * @throws Error with a sentence when it, or the database, cannot be read and written
 */
export function prepareDataDirectory(config: Config): void {
  const { dataDirectory } = config;
  try {
    makeDirectory(dataDirectory);
    accessSync(dataDirectory, constants.R_OK | constants.W_OK | constants.X_OK);
    const database = databaseFile(config);
    if (database !== undefined && !isMissing(database)) {
      accessSync(database, constants.R_OK | constants.W_OK);
    }
  } catch (cause) {
    throw new Error(
      `The data directory ${dataDirectory} cannot be used: ${(cause as Error).message}. ` +
        'Let this user read and write it, or name another one with --data or FLOWHOOK_DATA',
      { cause },
    );
  }
}

/** One directory after the other: below /proc, `mkdirSync` with `recursive` never returns. */
function makeDirectory(path: string): void {
  if (isMissing(path)) {
    makeDirectory(dirname(path));
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
  if (!statSync(path).isDirectory()) throw new Error(`${path} is not a directory`);
}
