/** `flowhook database copy` and `flowhook migrate`: copies a whole database, and migrates its schema. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Config } from '../../config/config.ts';
import { InUseError } from '../../model/error.ts';
import { createLogger } from '../../observe/log.ts';
import { countWords, grouped } from '../../std/amounts.ts';
import { createProgressBar, type ProgressBar } from '../../std/progress-bar.ts';
import { type CopyReport, copyTables, type OnCopied } from '../../store/copy/copy.ts';
import { databaseUrlMistake } from '../../store/database-url.ts';
import { explainFailure, openStore, openTables, readSchema } from '../../store/open.ts';
import type { Command } from '../command.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { addStoreOptions, prepareDataDirectory } from '../open.ts';
import { addSettings, configOf, type Options } from '../options.ts';
import { print, say, screen } from '../terminal.ts';
import { addDistribute } from './distribute.ts';

const AFTERWARDS =
  'The copy does not include the encryption key. Keep it, as FLOWHOOK_ENCRYPTION_KEY or as the file encryption.key in ' +
  'the data directory: without the key, webhooks cannot be signed';

export function addDatabase(program: Command): void {
  const database = program.command('database').description('copy or distribute the whole database');
  addDistribute(database);
  const command = database
    .command('copy')
    .description(
      'copy a whole database (sqlite:/path/to/file or postgres://…) into an empty one, and compare them at the end. ' +
        'Stop all servers on both first. An interrupted copy must start again',
    )
    .withExamples(
      'database copy --from sqlite:/srv/data/flowhook.db --to postgres://db.example.com/flowhook',
      'database copy --to sqlite:/srv/data/flowhook.db --json',
    )
    .option('--from <url>', 'database to copy (default: FLOWHOOK_DATABASE)')
    .option('--to <url>', 'empty database to copy into (default: FLOWHOOK_DATABASE)')
    .option('--force', 'copy from PostgreSQL even if nodes appear to be using it')
    .option('--json', 'print JSON')
    .addHelpText('after', `\n${AFTERWARDS}.`);
  addSettings(command, ['data']);
  command.action(copy);
}

async function copy(options: Options): Promise<void> {
  const { from, to } = await endsFrom(options);
  const config = configOf(options);
  const log = createLogger({ level: 'warn', pretty: config.logPretty });
  const startMs = performance.now();
  const source = await openTables(from, { log, make: false });
  const bars = new Bars();
  let report: CopyReport;
  try {
    const target = await openTables(to, { log, make: true });
    try {
      report = await copyTables({
        source,
        target,
        force: options.force === true,
        onCopied: (progress) => bars.show(progress),
      });
    } finally {
      bars.stop();
      await target.close();
    }
  } finally {
    await source.close();
  }
  const seconds = (performance.now() - startMs) / 1_000;
  const perSecond = Math.round(report.rows / seconds);
  say(AFTERWARDS);
  print(options, { ...report, seconds, rowsPerSecond: perSecond }, [
    ...report.tables.map(
      ({ name, rows, checksum }) => `${name}: ${countWords(rows, 'row')}, checksum ${checksum} in both`,
    ),
    `${countWords(report.rows, 'row')} copied and compared in ${seconds.toFixed(1)} s (${grouped(perSecond)}/s)`,
  ]);
}

/** Returns the URLs of the source and the target of a copy, after checking both databases. */
async function endsFrom(options: Options): Promise<{ from: string; to: string }> {
  if (options.from === undefined && options.to === undefined) {
    throw new UsageError(
      'Name at least one database with --from or --to. If only one of the flags is set, the other database is FLOWHOOK_DATABASE',
    );
  }
  const other = configOf(options).databaseUrl;
  const from = (options.from as string | undefined) ?? other;
  const to = (options.to as string | undefined) ?? other;
  for (const [flag, url] of [
    ['--from', from],
    ['--to', to],
  ] as const) {
    const mistake = databaseUrlMistake(url);
    if (mistake !== undefined) throw new UsageError(`${flag} must be ${mistake}`);
  }
  const [fromFile, toFile] = [fileOf(from), fileOf(to)];
  if (from === to) throw new UsageError('--from and --to name the same database');
  if (fromFile !== undefined && !existsSync(fromFile)) {
    throw new NotFoundError(`There is no database at ${fromFile}`);
  }
  if (fromFile !== undefined && toFile !== undefined && dirname(fromFile) === dirname(toFile)) {
    throw new UsageError(
      'Both databases are in the same directory, but each database needs its own directory. Choose another directory for one of them',
    );
  }
  await rejectOtherSchema('--from', from, false);
  await rejectOtherSchema('--to', to, true);
  return { from, to };
}

async function rejectOtherSchema(flag: string, url: string, mayBeEmpty: boolean): Promise<void> {
  const { found, newest } = await readSchema(url);
  if (found === newest || (found === 0 && mayBeEmpty)) return;
  if (found === 0)
    throw new NotFoundError(`The database in ${flag} has no tables, so there is nothing to copy`);
  throw new InUseError(
    found > newest
      ? `The schema of the database in ${flag} is at version ${found}, but this flowhook supports versions up to ${newest}. Use a newer flowhook`
      : `The schema of the database in ${flag} is at version ${found}, but this flowhook copies only version ${newest}. Set FLOWHOOK_DATABASE to ` +
          'that database and run `flowhook migrate up` first',
  );
}

function fileOf(url: string): string | undefined {
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
}

/** Shows one progress bar while rows are copied, and a second progress bar while the copied rows are compared. */
class Bars {
  #bar: ProgressBar | undefined;
  #doing: string | undefined;

  show({ doing, done, total }: Parameters<OnCopied>[0]): void {
    if (doing !== this.#doing) {
      this.stop();
      this.#doing = doing;
      this.#bar = createProgressBar({
        screen,
        total,
        noun: doing === 'copy' ? 'rows copied' : 'rows compared',
        clock: () => performance.now(),
      });
    }
    this.#bar?.update({ done, count: done });
  }

  stop(): void {
    this.#bar?.stop();
  }
}

export function addMigrate(program: Command): void {
  const migrate = program
    .command('migrate')
    .description(
      'show the schema version and run migrations; `serve`, and on SQLite most commands, migrate automatically',
    )
    .addHelpText(
      'after',
      '\nExit codes of status: 0 up to date, 1 migrations are pending, or the schema is newer than this flowhook',
    );
  addStoreOptions(
    migrate.command('status').description('show which migrations are pending').withExamples('migrate status'),
  ).action(status);
  addStoreOptions(
    migrate
      .command('up')
      .description('run pending migrations; back up a PostgreSQL database first')
      .withExamples('migrate up'),
  ).action(up);
}

async function status(options: Options): Promise<void> {
  const schema = await schemaOf(configOf(options));
  const { found, newest, waiting } = schema;
  const words =
    found > newest
      ? `The schema is at version ${found}, but this flowhook supports versions up to ${newest}. Use the newer flowhook`
      : waiting.length === 0
        ? `The schema is up to date (version ${found})`
        : `The schema is at version ${found}. Pending migrations, which \`flowhook migrate up\` runs: ${waiting.join(', ')}`;
  print(options, schema, [words]);
  if (found !== newest) process.exitCode = 1;
}

async function up(options: Options): Promise<void> {
  const config = configOf(options);
  prepareDataDirectory(config);
  const before = await schemaOf(config);
  // Opening the database migrates it.
  const store = await openStore(config.databaseUrl, {
    publicUrl: () => '',
    log: createLogger({ level: 'warn', pretty: config.logPretty }),
    listen: false,
  });
  await store.close();
  const { found } = await schemaOf(config);
  const words =
    found === before.found
      ? `The schema is already up to date (version ${found})`
      : `The schema was migrated from version ${before.found} to ${found}`;
  print(options, { from: before.found, to: found }, [words]);
}

async function schemaOf({ databaseUrl }: Config) {
  try {
    return await readSchema(databaseUrl);
  } catch (error) {
    throw await explainFailure(databaseUrl, error);
  }
}
