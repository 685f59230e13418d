/** Opens the database for a command, also while a server is running on it. */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { localAuthor } from '../model/audit.ts';
import { InUseError } from '../model/error.ts';
import { serviceUrl } from '../net/host.ts';
import { createLogger } from '../observe/log.ts';
import { authoredBy } from '../store/audited.ts';
import { isPostgres } from '../store/database-url.ts';
import { explainFailure, openStore, readSchema } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { NotFoundError } from './exit.ts';
import { addSettings, configOf, type Options } from './options.ts';
import { say } from './terminal.ts';

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

/** The name of the user, with the one who called sudo; the user's number if it has no name, as in containers. */
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
 * Opens the database, runs the operation, and always closes the database again.
 *
 * @param use.make whether to create a missing database; pointless for commands that only read
 * @param use.own whether to become the owner of the database if no server is, so that jobs can run in this process
 * @param operation is told whether this process is the owner
 * @throws NotFoundError when there is no database and `use.make` is false
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
        `There is no database ${file}. Name its directory with --data or FLOWHOOK_DATA, ` +
          'or make one with `flowhook serve`',
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
      // That a new database was made has been said already: log only what goes wrong.
      log: createLogger({
        level: config.logLevel === 'info' ? 'warn' : config.logLevel,
        pretty: config.logPretty,
      }),
      // Where a server with the same settings listens: events of an import contain it.
      publicUrl: () => config.publicUrl ?? serviceUrl({ ...config, isSecure: config.tlsCert !== undefined }),
    });
  // On PostgreSQL a command cannot know whether a server runs somewhere, and never becomes the owner.
  let owned = use.own === true && !isPostgres(config.databaseUrl);
  const store = await open(owned).catch((error) => {
    if (!owned || !(error instanceof InUseError)) throw error;
    owned = false;
    return open(false);
  });
  try {
    await operation(authoredBy(store, localAuthor('command', systemUser(config.environment))), config, owned);
  } catch (error) {
    // Damage may come to light only when a page is read.
    throw await explainFailure(config.databaseUrl, error);
  } finally {
    await store.close();
  }
}

/** A command does not migrate a PostgreSQL database that others use: only `migrate up` and `serve` do. */
async function refuseOldTables(config: Config, use: { make: boolean }): Promise<void> {
  const { found, waiting } = await readSchema(config.databaseUrl);
  if (found === 0 && !use.make) {
    throw new NotFoundError(
      'This PostgreSQL database has no tables yet. `flowhook serve` or `flowhook migrate up` makes them',
    );
  }
  if (found > 0 && waiting.length > 0) {
    throw new Error(
      `The tables have version ${found}, and this flowhook needs ${waiting.at(-1)}. ` +
        'Run `flowhook migrate up`; servers of the version before go on beside it',
    );
  }
}
