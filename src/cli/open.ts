/** Opens the database for a command, also while a server is running on it. */
import { accessSync, constants, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { Config } from '../config/config.ts';
import { localAuthor } from '../model/audit.ts';
import { InUseError } from '../model/error.ts';
import { serviceUrl } from '../net/host.ts';
import { createLogger } from '../observe/log.ts';
import { makeDirectory } from '../std/make-directory.ts';
import { authoredBy } from '../store/audited.ts';
import { isPostgres } from '../store/database-url.ts';
import { explainFailure, openStore, readSchema } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import type { Command } from './command.ts';
import { NotFoundError } from './exit.ts';
import { addSettings, configOf, type Options } from './options.ts';
import { say } from './terminal.ts';

/** Returns the path of an SQLite database file; undefined for PostgreSQL. */
export function databaseFile({ databaseUrl }: Config): string | undefined {
  return databaseUrl.startsWith('sqlite:/') ? databaseUrl.slice('sqlite:'.length) : undefined;
}

/**
 * Whether the file does not exist. For a file that this user may not access, the result is false, because opening the
 * file reports the reason.
 */
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
 * @throws Error with advice when the directory or the database cannot be read and written
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
        'Give this user read and write access, or choose another directory with --data or FLOWHOOK_DATA',
      { cause },
    );
  }
}

/**
 * Returns the name of the user, and of the user who ran sudo. A user without a name, as in containers, is shown by
 * number.
 */
export function systemUser(environment: ReadonlyMap<string, string>): string {
  const before = environment.get('SUDO_USER');
  const name = nameOfUser();
  return before === undefined || before === name ? name : `${name} (sudo by ${before})`;
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** Adds `--json` and the flags that locate the database. */
export function addStoreOptions(command: Command): Command {
  command.option('--json', 'print JSON');
  return addSettings(command, ['data', 'database']);
}

/**
 * Opens the database, runs the operation, and always closes the database.
 *
 * @param use.make whether to create a missing database
 * @param use.own whether to become the owner of the database if no server owns it, so that jobs can run in this process
 * @param operation receives in `owned` whether this process owns the database
 * @throws NotFoundError when the database does not exist and `use.make` is false
 */
export async function withStore(
  options: Options,
  use: { make: boolean; own?: boolean },
  operation: (store: Store, config: Config, owned: boolean) => Promise<void>,
): Promise<void> {
  const config = configOf(options);
  const file = databaseFile(config);
  if (file !== undefined && isMissing(file)) {
    if (!use.make) {
      throw new NotFoundError(
        `There is no database at ${file}. Name its directory with --data or FLOWHOOK_DATA, ` +
          'or create one with `flowhook serve`',
      );
    }
    say(`Creating a new database: ${file}`);
  }
  prepareDataDirectory(config);
  if (isPostgres(config.databaseUrl)) await refuseOldTables(config, use);
  const open = (own: boolean) =>
    openStore(config.databaseUrl, {
      own,
      poolSize: config.databasePool,
      quotas: config.quotas,
      listen: config.databaseListen,
      // Only problems are logged, because the command prints its own messages.
      log: createLogger({
        level: config.logLevel === 'info' ? 'warn' : config.logLevel,
        pretty: config.logPretty,
      }),
      // The events of an import contain the URL of a server with these settings.
      publicUrl: () => urlOfServer(config),
    });
  // On PostgreSQL, a command cannot know whether a server is running on another machine, so the command never becomes
  // the owner.
  let owned = use.own === true && !isPostgres(config.databaseUrl);
  const store = await open(owned).catch((error) => {
    if (!owned || !(error instanceof InUseError)) throw error;
    owned = false;
    return open(false);
  });
  try {
    await operation(authoredBy(store, localAuthor('command', systemUser(config.environment))), config, owned);
  } catch (error) {
    // Some damage to the database is found only when the damaged page is read.
    throw await explainFailure(config.databaseUrl, error);
  } finally {
    await store.close();
  }
}

/**
 * Rejects a PostgreSQL database with an old schema. Commands do not migrate such a database, because other processes
 * use it; only `migrate up` and `serve` migrate it.
 */
async function refuseOldTables(config: Config, use: { make: boolean }): Promise<void> {
  const { found, waiting } = await readSchema(config.databaseUrl);
  if (found === 0 && !use.make) {
    throw new NotFoundError(
      'This PostgreSQL database has no tables yet. Create them with `flowhook serve` or `flowhook migrate up`',
    );
  }
  if (found > 0 && waiting.length > 0) {
    throw new Error(
      `The schema of the database is at version ${found}, but this flowhook needs version ${waiting.at(-1)}. ` +
        'Run `flowhook migrate up`; servers of the previous version keep working',
    );
  }
}

/** The URL of the server that has these settings. */
export function urlOfServer(config: Config): string {
  return config.publicUrl ?? serviceUrl({ ...config, isSecure: config.tlsCert !== undefined });
}
