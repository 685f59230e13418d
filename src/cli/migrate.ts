/** `flowhook migrate status|up`: shows and runs pending migrations without starting a server. */
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { createLogger } from '../observe/log.ts';
import { explainFailure, openStore, readSchema } from '../store/open.ts';
import { prepareDataDirectory } from './data-directory.ts';
import { addStoreOptions } from './open.ts';
import { print } from './output.ts';
import { configOf, type Options } from './settings.ts';

export function addMigrate(program: Command): void {
  const migrate = program
    .command('migrate')
    .description('the schema version of the database; `serve` and most commands migrate it by themselves')
    .addHelpText(
      'after',
      '\nExit codes of status: 0 up to date, 1 migrations are pending, or the tables are newer than this flowhook',
    );
  addStoreOptions(migrate.command('status').description('show which migrations are pending')).action(status);
  addStoreOptions(
    migrate.command('up').description('run the pending migrations; back up a PostgreSQL database first'),
  ).action(up);
}

async function status(options: Options): Promise<void> {
  const schema = await schemaOf(configOf(options));
  const { found, newest, waiting } = schema;
  const words =
    found > newest
      ? `The tables have version ${found}, and this flowhook knows versions up to ${newest}: run the newer flowhook`
      : waiting.length === 0
        ? `The tables have version ${found}: up to date`
        : `The tables have version ${found}; these wait, and \`flowhook migrate up\` runs them: ${waiting.join(', ')}`;
  print(options, schema, [words]);
  if (found !== newest) process.exitCode = 1;
}

async function up(options: Options): Promise<void> {
  const config = configOf(options);
  prepareDataDirectory(config);
  const before = await schemaOf(config);
  // Opening migrates.
  const store = await openStore(config.databaseUrl, {
    publicUrl: () => '',
    log: createLogger({ level: 'warn', pretty: config.logPretty }),
    listen: false,
  });
  await store.close();
  const { found } = await schemaOf(config);
  const words =
    found === before.found
      ? `The tables have version ${found} already`
      : `The tables were brought from version ${before.found} to ${found}`;
  print(options, { from: before.found, to: found }, [words]);
}

async function schemaOf({ databaseUrl }: Config) {
  try {
    return await readSchema(databaseUrl);
  } catch (error) {
    throw await explainFailure(databaseUrl, error);
  }
}
