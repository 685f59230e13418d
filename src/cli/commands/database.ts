/** `flowhook database copy` and `flowhook migrate`: copies a whole database, and brings its tables up. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { InUseError } from '../../model/error.ts';
import { createLogger } from '../../observe/log.ts';
import { createProgressBar, type ProgressBar } from '../../std/progress-bar.ts';
import { type CopyReport, copyTables, type OnCopied } from '../../store/copy/copy.ts';
import { databaseUrlMistake } from '../../store/database-url.ts';
import { explainFailure, openStore, openTables, readSchema } from '../../store/open.ts';
import { NotFoundError, UsageError } from '../exit.ts';
import { addStoreOptions, prepareDataDirectory } from '../open.ts';
import { addSettings, configOf, type Options } from '../options.ts';
import { print, say, screen } from '../terminal.ts';

const AFTERWARDS =
  'The encryption key is not in the database: take it along, as FLOWHOOK_ENCRYPTION_KEY or as the\n' +
  'file encryption.key in the data directory. Without it no webhook can be signed';

export function addDatabase(program: Command): void {
  const command = program
    .command('database')
    .description('the database as a whole')
    .command('copy')
    .description(
      'copy a whole database into an empty one: sqlite:/path/to/file, postgres://…, or one of each. No server may be ' +
        'running on either. At the end both are compared; a copy that was interrupted has to begin anew',
    )
    .option('--from <url>', 'the database to copy (default: FLOWHOOK_DATABASE)')
    .option(
      '--to <url>',
      'the empty database to fill (default: FLOWHOOK_DATABASE, which may hold a password)',
    )
    .option('--force', 'copy from PostgreSQL even if nodes seem to be using it')
    .option('--json', 'print JSON')
    .addHelpText('after', `\n${AFTERWARDS}.`);
  addSettings(command, ['data']);
  command.action(copy);
}

async function copy(options: Options): Promise<void> {
  const { from, to } = await endsFrom(options);
  const config = configOf(options);
  const log = createLogger({ level: 'warn', pretty: config.logPretty });
  const began = performance.now();
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
  const seconds = (performance.now() - began) / 1_000;
  const perSecond = Math.round(report.rows / seconds);
  say(AFTERWARDS);
  print(options, { ...report, seconds, rowsPerSecond: perSecond }, [
    ...report.tables.map(({ name, rows, checksum }) => `${name}: ${rows} rows, ${checksum} in both`),
    `${report.rows} rows copied and compared in ${seconds.toFixed(1)} s (${perSecond}/s)`,
  ]);
}

/** Both URLs, checked: two different databases that can be copied. */
async function endsFrom(options: Options): Promise<{ from: string; to: string }> {
  if (options.from === undefined && options.to === undefined) {
    throw new UsageError('Name a database with --from or --to; FLOWHOOK_DATABASE is the other one');
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
    throw new NotFoundError(`There is no database ${fromFile}`);
  }
  if (fromFile !== undefined && toFile !== undefined && dirname(fromFile) === dirname(toFile)) {
    throw new UsageError('Both files lie in one directory, which belongs to one of them: name another one');
  }
  await refuseOldTables('--from', from, false);
  await refuseOldTables('--to', to, true);
  return { from, to };
}

async function refuseOldTables(flag: string, url: string, mayBeEmpty: boolean): Promise<void> {
  const { found, newest } = await readSchema(url);
  if (found === newest || (found === 0 && mayBeEmpty)) return;
  if (found === 0) throw new NotFoundError(`The database of ${flag} has no tables: there is nothing to copy`);
  throw new InUseError(
    found > newest
      ? `The tables of ${flag} have version ${found}, and this flowhook knows versions up to ${newest}: use the newer one`
      : `The tables of ${flag} have version ${found}, and this flowhook copies version ${newest}. Name that database in ` +
          'FLOWHOOK_DATABASE and run `flowhook migrate up` first',
  );
}

function fileOf(url: string): string | undefined {
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
}

/** One progress bar while rows are copied, another while they are compared. */
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
