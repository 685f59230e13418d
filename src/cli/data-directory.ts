/** Locates the database file and prepares the data directory, before anything else is tried. */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import type { Config } from '../config/config.ts';

/** The file of the database; undefined when the URL names no file. */
export function databaseFile({ databaseUrl }: Config): string | undefined {
  return databaseUrl.startsWith('sqlite:/') ? databaseUrl.slice('sqlite:'.length) : undefined;
}

/**
 * Creates the data directory if it is missing.
 *
 * @throws Error with a sentence when it, or the database, cannot be read and written
 */
export function prepareDataDirectory(config: Config): void {
  const { dataDirectory } = config;
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
    accessSync(dataDirectory, constants.R_OK | constants.W_OK | constants.X_OK);
    const database = databaseFile(config);
    if (database !== undefined && existsSync(database)) {
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
