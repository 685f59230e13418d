/** `flowhook backup create|verify|restore|list`: backups of an SQLite database. */
import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Config } from '../../config/config.ts';
import { localAuthor } from '../../model/audit.ts';
import { bytesWords, grouped } from '../../std/amounts.ts';
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
import type { Command } from '../command.ts';
import { ConflictError, NotFoundError, UsageError } from '../exit.ts';
import { addStoreOptions, databaseFile, isMissing, systemUser } from '../open.ts';
import { configOf, type Options } from '../options.ts';
import { print, say, screen, table, warn } from '../terminal.ts';
import { dateWords } from '../times.ts';

const WITHOUT_KEY =
  'Backups do not contain the encryption key. Store it in another safe place: without the key, webhooks cannot be signed';

export function addBackup(program: Command): void {
  const backup = program
    .command('backup')
    .description('back up, verify and restore the SQLite database')
    .addHelpText('after', `\n${WITHOUT_KEY}.\n${POSTGRES_BACKUPS}.`);
  addStoreOptions(
    backup
      .command('create')
      .description('write and verify a backup, also while a server is running')
      .withExamples('backup create', 'backup create --to /mnt/elsewhere --json')
      .option(
        '--to <directory>',
        'directory for the backup (default: FLOWHOOK_BACKUP_DIRECTORY, else backups in the data directory)',
      )
      .addHelpText('after', `\n${WITHOUT_KEY}.`),
  ).action(create);
  addStoreOptions(
    backup
      .command('verify')
      .description('verify a backup: its checksum, its tables, and the counts in its manifest')
      .withExamples(
        'backup verify',
        'backup verify flowhook-2026-11-21T040503Z-v8.db',
        'backup verify --database postgres://db.example.com/restored',
      )
      .argument('[backup]', 'file, or name of a file in the backup directory (default: the newest there)')
      .addHelpText(
        'after',
        '\nWith --database postgres://…, verifies a database that was restored there.\n' +
          'Exit codes: 0 intact, 1 damaged, or made by a newer flowhook',
      ),
  ).action(verify);
  addStoreOptions(
    backup
      .command('restore')
      .description('replace the database with a backup; stop the server first')
      .withExamples('backup restore flowhook-2026-11-21T040503Z-v8.db --force')
      .argument('<backup>', 'file, or name of a file in the backup directory')
      .option('--force', 'replace an existing database, which is kept under another name')
      .addHelpText('after', `\n${WITHOUT_KEY}.`),
  ).action(restore);
  addStoreOptions(
    backup
      .command('list')
      .description('list backups, newest first')
      .withExamples('backup list', 'backup list /mnt/elsewhere')
      .argument('[directory]', 'directory to list (default: the backup directory)'),
  ).action(list);
}

async function create(options: Options): Promise<void> {
  const config = configOf(options);
  const database = sqliteFile(config);
  if (isMissing(database)) {
    throw new NotFoundError(
      `There is no database at ${database}. Name its directory with --data or FLOWHOOK_DATA`,
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
  reportMistakes('The backup was written, but the database is damaged', made.mistakes);
}

async function verify(backup: string | undefined, options: Options): Promise<void> {
  const config = configOf(options);
  if (backup === undefined && isPostgres(config.databaseUrl)) {
    const found = await verifyDatabase(config.databaseUrl);
    print(
      options,
      found,
      found.mistakes.length > 0 ? [] : [`The database is intact: ${contentWords(found)}`],
    );
    reportMistakes('The database is damaged', found.mistakes);
    return;
  }
  const file = backup === undefined ? newest(config) : find(backup, config);
  const found = await verifyBackup(file);
  noteVerified(file, found.mistakes.length === 0);
  print(options, found, found.mistakes.length > 0 ? [] : [`${file} is intact: ${contentWords(found)}`]);
  if (found.checksumMatches === null) {
    say('The backup has no manifest, so its checksum could not be compared');
  }
  reportMistakes(`${file} is not usable`, found.mistakes);
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
    checkKey: (needed) => rejectOtherKey(needed, config),
  });
  const { database, replaced, schema, newest: known, encryptionKey } = restored;
  const madeAt = readManifest(file)?.createdAt;
  print(options, restored, [`${database} is now ${basename(file)}: ${contentWords(restored)}`]);
  if (replaced !== null)
    say(`The previous database was kept as ${replaced}. Delete it when you no longer need it`);
  if (schema < known) say(`The next start migrates the schema from version ${schema} to ${known}`);
  if (encryptionKey !== null && keyFingerprint(config) === undefined) {
    say(
      `The encryption key with fingerprint ${encryptionKey} is missing here. Before you start the server, set ` +
        `FLOWHOOK_ENCRYPTION_KEY to it, or save it as ${keyFile(config)}`,
    );
  }
  const from = madeAt === undefined ? '' : ` (${dateWords(madeAt, Date.now())})`;
  say(
    `Everything is as it was when the backup was made${from}. Jobs that were running then run again, and ` +
      'deliveries that were waiting then are sent, even if they have arrived since. Keys that you have revoked since ' +
      'are valid again, and people that you have erased since are back: revoke and erase them again',
  );
}

const HEADS = [
  { name: 'backup' },
  { name: 'size' },
  { name: 'created' },
  { name: 'schema', drop: 1 },
  { name: 'verified', drop: 2 },
];

async function list(directory: string | undefined, options: Options): Promise<void> {
  const config = configOf(options);
  const places = directory === undefined ? backupDirectories(config) : [resolve(directory)];
  const found = places.flatMap(listBackups).sort((a, b) => b.createdAt - a.createdAt);
  const rows = found.map((one) => [
    places.length > 1 ? one.file : one.name,
    bytesWords(one.bytes),
    toIso(one.createdAt),
    `version ${one.schema}`,
    one.verifiedAt === null ? 'not verified' : `verified ${one.verifiedAt}`,
  ]);
  const shown = found.map((one) => ({ ...one, createdAt: toIso(one.createdAt) }));
  print(options, shown, table(rows, process.stdout.columns, HEADS));
  if (found.length === 0) say(`There are no backups in ${places.join(' and ')}`);
}

/** Returns the path of the SQLite database file. @throws UsageError on PostgreSQL */
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
  throw new NotFoundError(`There is no backup ${backup}. To list the backups, run \`flowhook backup list\``);
}

function rejectOtherKey(needed: string | null, config: Config): void {
  const here = keyFingerprint(config);
  if (needed === null || here === undefined || here === needed) return;
  throw new ConflictError(
    `The backup needs the encryption key with fingerprint ${needed}, but the key of this installation has fingerprint ${here}. ` +
      `Nothing was changed. Set FLOWHOOK_ENCRYPTION_KEY to the key of the backup, or replace ${keyFile(config)} with that key`,
  );
}

function keyWords(fingerprint: string, config: Config): string {
  const place = config.encryptionKey === undefined ? ` (${keyFile(config)})` : '';
  return `This backup needs the key with fingerprint ${fingerprint}${place}`;
}

function contentWords({ schema, counts }: Pick<Inspection, 'schema' | 'counts'>): string {
  const amounts = Object.entries(counts).map(([nouns, count]) => {
    const noun = nouns === 'deliveries' ? 'delivery' : nouns.slice(0, -1);
    return `${grouped(count)} ${count === 1 ? noun : nouns}`;
  });
  return `schema version ${schema}, ${amounts.join(', ')}`;
}

function reportMistakes(what: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return;
  warn(`flowhook: ${what}: ${mistakes.join('; ')}`);
  process.exitCode = 1;
}

/**
 * Writes the result of a verification to the manifest, which `backup list` reads. If writing fails, the verification
 * still succeeds.
 */
function noteVerified(file: string, isWhole: boolean): void {
  const manifest = readManifest(file);
  if (manifest === undefined) return;
  try {
    writeManifest(file, { ...manifest, verifiedAt: isWhole ? toIso(Date.now()) : null });
  } catch (error) {
    say(`The result could not be written to the manifest of the backup: ${(error as Error).message}`);
  }
}

/**
 * Shows a progress bar while the backup is written, then a live line, because the duration of the verification is
 * unknown.
 */
class Progress {
  readonly #clock = () => performance.now();
  readonly #line = createLiveLine(screen, this.#clock);
  #bar: ReturnType<typeof createProgressBar> | undefined;

  show(progress: BackupProgress): void {
    if (progress.doing === 'check') {
      this.#bar?.stop();
      this.#line.show(() => 'verifying the backup');
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
