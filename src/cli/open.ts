/** Opens the database for a command, also while a server is running on it. */
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
import { databaseFile, isMissing, prepareDataDirectory } from './data-directory.ts';
import { NotFoundError } from './exit.ts';
import { say } from './say.ts';
import { addSettings, configOf, type Options } from './settings.ts';
import { systemUser } from './system-user.ts';

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
