/** `flowhook backup create|verify|restore|list`: backups of an SQLite database. */
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { localAuthor } from '../../model/audit.ts';
import { bytesWords, durationWords } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { createLiveLine, createProgressBar } from '../../std/progress-bar.ts';
import {
  type BackupProgress,
  backupDirectories,
  type Inspection,
  type ListedBackup,
  listBackups,
  readManifest,
  writeManifest,
} from '../../store/backup-files.ts';
import { isPostgres } from '../../store/database-url.ts';
import {
  createBackup,
  POSTGRES_BACKUPS,
  restoreBackup,
  verifyBackup,
  verifyDatabase,
} from '../../store/open.ts';
import { keyFile, keyFingerprint } from '../../teams/encryption-key.ts';
import { ConflictError, NotFoundError, UsageError } from '../exit.ts';
import { addStoreOptions, databaseFile, isMissing, systemUser } from '../open.ts';
import { configOf, type Options } from '../options.ts';
import { print, say, screen, table, warn } from '../terminal.ts';

const WITHOUT_KEY =
  'The encryption key is never in a backup: keep it apart from them, and as safely.\n' +
  'Without it no webhook can be signed';

export function addBackup(program: Command): void {
  const backup = program
    .command('backup')
    .description('back up, verify and restore the SQLite database')
    .addHelpText('after', `\n${WITHOUT_KEY}.\n${POSTGRES_BACKUPS}.`);
  addStoreOptions(
    backup
      .command('create')
      .description(
        'write a backup, also while a server is running; it holds everything acknowledged before, and is verified ' +
          'before it gets its name',
      )
      .option(
        '--to <directory>',
        'where to (default: FLOWHOOK_BACKUP_DIRECTORY, else backups in the data directory)',
      )
      .addHelpText('after', `\n${WITHOUT_KEY}.`),
  ).action(create);
  addStoreOptions(
    backup
      .command('verify')
      .description(
        'read a whole backup: its checksum, its tables, and whether it holds what its manifest says',
      )
      .argument('[backup]', 'its file, or its name in the directory of backups (default: the newest there)')
      .addHelpText(
        'after',
        '\nWith --database postgres://… it verifies a database restored there.\n' +
          'Exit codes of verify: 0 whole, 1 damaged, or newer than this flowhook',
      ),
  ).action(verify);
  addStoreOptions(
    backup
      .command('restore')
      .description('replace the database with a backup; no server may be running on it')
      .argument('<backup>', 'its file, or its name in the directory of backups')
      .option('--force', 'even if there is a database, which is kept beside it under another name')
      .addHelpText('after', `\n${WITHOUT_KEY}.`),
  ).action(restore);
  addStoreOptions(
    backup
      .command('list')
      .description('list backups, newest first')
      .argument('[directory]', 'where to look (default: the directory of backups)'),
  ).action(list);
}

async function create(options: Options): Promise<void> {
  const config = configOf(options);
  const database = sqliteFile(config);
  if (isMissing(database)) {
    throw new NotFoundError(
      `There is no database ${database}. Name its directory with --data or FLOWHOOK_DATA`,
    );
  }
  const to = options.to as string | undefined;
  const progress = new Progress();
  const made = await createBackup(config.databaseUrl, {
    directory: to === undefined ? config.backupDirectory : resolve(to),
    now: Date.now(),
    origin: 'command',
    onProgress: (one) => progress.show(one),
  }).finally(() => progress.stop());
  print(options, made, [made.file]);
  say(`${bytesWords(made.bytes)}, ${contentWords(made)}`);
  say(made.encryptionKey === null ? WITHOUT_KEY : `${WITHOUT_KEY}. ${keyWords(made.encryptionKey, config)}`);
  tellMistakes('The backup was written, but the database itself is not whole', made.mistakes);
}

async function verify(backup: string | undefined, options: Options): Promise<void> {
  const config = configOf(options);
  if (backup === undefined && isPostgres(config.databaseUrl)) {
    const found = await verifyDatabase(config.databaseUrl);
    print(options, found, found.mistakes.length > 0 ? [] : [`The database is whole: ${contentWords(found)}`]);
    tellMistakes('The database is not whole', found.mistakes);
    return;
  }
  const file = backup === undefined ? newest(config) : find(backup, config);
  const found = await verifyBackup(file);
  noteVerified(file, found.mistakes.length === 0);
  print(options, found, found.mistakes.length > 0 ? [] : [`${file} is whole: ${contentWords(found)}`]);
  if (found.checksumMatches === null) {
    say('Nothing beside it says what its checksum was: it was read, but not compared');
  }
  tellMistakes(`${file} cannot be relied on`, found.mistakes);
}

async function restore(backup: string, options: Options): Promise<void> {
  const config = configOf(options);
  sqliteFile(config);
  const file = find(backup, config);
  const restored = await restoreBackup(config.databaseUrl, {
    file,
    force: options.force === true,
    now: Date.now(),
    author: localAuthor('command', systemUser(config.environment)),
    checkKey: (needed) => refuseOtherKey(needed, config),
  });
  const { database, replaced, schema, newest: known, encryptionKey } = restored;
  const madeAt = readManifest(file)?.createdAt;
  print(options, restored, [`${database} is now ${basename(file)}: ${contentWords(restored)}`]);
  if (replaced !== null)
    say(`The database that was there is kept as ${replaced}. Delete it when it is not needed`);
  if (schema < known) say(`Its tables have version ${schema}: the next start migrates them to ${known}`);
  if (encryptionKey !== null && keyFingerprint(config) === undefined) {
    say(
      `It needs the encryption key with the fingerprint ${encryptionKey}, which is not here: set ` +
        `FLOWHOOK_ENCRYPTION_KEY to it, or put it back as ${keyFile(config)}, before you start the server`,
    );
  }
  say(
    `Everything is as it was${madeAt === undefined ? '' : ` at ${madeAt}`}: jobs that ran then are taken up again, what waited ` +
      'then is delivered, also what arrived since. Keys that were revoked since are valid again, and people who were ' +
      'erased since are back: do both once more',
  );
}

const HEADS = [
  { name: 'backup' },
  { name: 'size' },
  { name: 'made' },
  { name: 'tables', drop: 1 },
  { name: 'verified', drop: 2 },
];

async function list(directory: string | undefined, options: Options): Promise<void> {
  const config = configOf(options);
  const places = directory === undefined ? backupDirectories(config) : [resolve(directory)];
  const found = places.flatMap(listBackups).sort((a, b) => b.createdAt - a.createdAt);
  const now = Date.now();
  const rows = found.map((one) => [
    places.length > 1 ? one.file : one.name,
    bytesWords(one.bytes),
    `${durationWords(now - one.createdAt)} ago`,
    `version ${one.schema}`,
    one.verifiedAt === null ? 'not verified' : `verified ${one.verifiedAt.slice(0, 16)}Z`,
  ]);
  const shown = found.map((one) => ({ ...one, createdAt: toIso(one.createdAt) }));
  print(options, shown, table(rows, process.stdout.columns, HEADS));
  if (found.length === 0) say(`There are no backups in ${places.join(' and ')}`);
}

/** @throws UsageError when it is PostgreSQL */
function sqliteFile(config: Config): string {
  const file = databaseFile(config);
  if (file === undefined) throw new UsageError(POSTGRES_BACKUPS);
  return file;
}

function newest(config: Config): string {
  const places = backupDirectories(config);
  const [first] = places.flatMap(listBackups).sort((a: ListedBackup, b) => b.createdAt - a.createdAt);
  if (first === undefined) throw new NotFoundError(`There are no backups in ${places.join(' and ')}`);
  return first.file;
}

function find(backup: string, config: Config): string {
  const candidates = [resolve(backup), ...backupDirectories(config).map((place) => join(place, backup))];
  const file = candidates.find((one) => existsSync(one));
  if (file !== undefined) return file;
  throw new NotFoundError(
    `There is no backup ${backup}. \`flowhook backup list\` shows those that there are`,
  );
}

function refuseOtherKey(needed: string | null, config: Config): void {
  const here = keyFingerprint(config);
  if (needed === null || here === undefined || here === needed) return;
  throw new ConflictError(
    `The backup needs the encryption key with the fingerprint ${needed}, and the one here is ${here}. Nothing was ` +
      `changed. Set FLOWHOOK_ENCRYPTION_KEY to the one it needs, or put that in the place of ${keyFile(config)}`,
  );
}

function keyWords(fingerprint: string, config: Config): string {
  const place = config.encryptionKey === undefined ? `, which is ${keyFile(config)}` : '';
  return `This one needs the key with the fingerprint ${fingerprint}${place}`;
}

function contentWords({ schema, counts }: Pick<Inspection, 'schema' | 'counts'>): string {
  const held = Object.entries(counts).map(([nouns, count]) => {
    const noun = nouns === 'deliveries' ? 'delivery' : nouns.slice(0, -1);
    return `${count.toLocaleString('en-GB')} ${count === 1 ? noun : nouns}`;
  });
  return `tables of version ${schema}, ${held.join(', ')}`;
}

function tellMistakes(what: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return;
  warn(`flowhook: ${what}: ${mistakes.join('; ')}`);
  process.exitCode = 1;
}

/** Notes the result in the manifest, for `backup list`. Failing to write it does not fail the verification. */
function noteVerified(file: string, isWhole: boolean): void {
  const manifest = readManifest(file);
  if (manifest === undefined) return;
  try {
    writeManifest(file, { ...manifest, verifiedAt: isWhole ? toIso(Date.now()) : null });
  } catch (error) {
    say(`That it was verified could not be noted beside it: ${(error as Error).message}`);
  }
}

/** A progress bar while the file is written, then a live line: how long verifying takes is unknown. */
class Progress {
  readonly #clock = () => performance.now();
  readonly #line = createLiveLine(screen, this.#clock);
  #bar: ReturnType<typeof createProgressBar> | undefined;

  show(progress: BackupProgress): void {
    if (progress.doing === 'check') {
      this.#bar?.stop();
      this.#line.show(() => 'reading all of it once more');
      return;
    }
    const { bytes, total } = progress;
    this.#bar ??= createProgressBar({ screen, total, noun: 'MB written', clock: this.#clock });
    this.#bar.update({ done: bytes, count: Math.round(bytes / 1_000_000) });
  }

  stop(): void {
    this.#bar?.stop();
    this.#line.stop();
  }
}
