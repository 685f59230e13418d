/** Backup files: their names, the manifest of each backup, listing a directory, and deleting old backups. */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { toIso } from '../std/clock.ts';

/** What caused the backup. Only scheduled backups are deleted automatically. */
export type BackupOrigin = 'command' | 'scheduled' | 'migration';

/** Numbers of rows, of all teams. */
export interface BackupCounts {
  teams: number;
  workflows: number;
  jobs: number;
  /** Rows of all stored versions. */
  records: number;
  events: number;
  webhooks: number;
  deliveries: number;
}

/** The content of the file `<backup>.json` beside a backup. */
export interface BackupManifest {
  format: 1;
  /** When the backup started, in ISO 8601. The backup contains every change acknowledged before this time. */
  createdAt: string;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /** SHA-256 of the whole file, in hexadecimal. */
  sha256: string;
  /**
   * The fingerprint of the encryption key that the backup needs, never the key itself; null if the backup contains
   * nothing encrypted.
   */
  encryptionKey: string | null;
  counts: BackupCounts;
  /** When the backup was verified, in ISO 8601; null if the backup is damaged. */
  verifiedAt: string | null;
}

/** A backup found in a directory. */
export interface ListedBackup {
  name: string;
  file: string;
  /**
   * When the backup started, in epoch milliseconds but rounded to a second, because the time comes from the file's
   * name.
   */
  createdAt: number;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /**
   * When the backup was verified, according to its manifest, in ISO 8601; null if the manifest is missing or describes
   * a file of another size.
   */
  verifiedAt: string | null;
}

/** Prefix of files that are still being written. */
const UNFINISHED = '.unfinished-';
const NAME = /^flowhook-(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z-v(\d+)(?:-(scheduled|migration))?\.db$/;

export function isBackupName(name: string): boolean {
  return NAME.test(name);
}

/**
 * Returns a name such as `flowhook-2026-11-21T040503Z-v8.db`, or `…-v8-migration.db` for a backup made by a migration.
 */
export function backupName(made: { createdAt: number; schema: number; origin: BackupOrigin }): string {
  const time = toIso(made.createdAt).slice(0, 19).replaceAll(':', '');
  const ending = made.origin === 'command' ? '' : `-${made.origin}`;
  return `flowhook-${time}Z-v${made.schema}${ending}.db`;
}

/** Returns a new path of a hidden file in the directory, for a file that is still being written. */
export function unfinishedFile(directory: string): string {
  return join(directory, `${UNFINISHED}${randomUUID()}`);
}

/** Deletes unfinished files that processes left behind when they died, and manifests whose backup is missing. */
export function sweepUnfinished(directory: string): void {
  const names = new Set(readdirSync(directory));
  for (const name of names) {
    const backup = name.slice(0, -'.json'.length);
    const isLeft = name.endsWith('.json') && isBackupName(backup) && !names.has(backup);
    if (isLeft || name.startsWith(UNFINISHED)) rmSync(join(directory, name), { force: true });
  }
}

/**
 * Returns the directories that may contain backups of a database: the configured directory and, on SQLite, the
 * directory for backups made by migrations.
 */
export function backupDirectories(config: { backupDirectory: string; databaseUrl: string }): string[] {
  const { backupDirectory, databaseUrl } = config;
  if (!databaseUrl.startsWith('sqlite:')) return [backupDirectory];
  return [...new Set([backupDirectory, join(dirname(databaseUrl.slice('sqlite:'.length)), 'backups')])];
}

/** Lists the backups in a directory, newest first. The list is empty if the directory does not exist. */
export function listBackups(directory: string): ListedBackup[] {
  const found: ListedBackup[] = [];
  for (const name of namesIn(directory)) {
    const match = NAME.exec(name);
    if (match === null) continue;
    const [, day, hour, minute, second, schema, origin = 'command'] = match;
    const file = join(directory, name);
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat?.isFile() !== true) continue;
    const manifest = readManifest(file);
    found.push({
      name,
      file,
      createdAt: Date.parse(`${day}${hour}:${minute}:${second}Z`),
      origin: origin as BackupOrigin,
      schema: Number(schema),
      bytes: stat.size,
      verifiedAt: manifest?.bytes === stat.size ? manifest.verifiedAt : null,
    });
  }
  return found.sort((a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1));
}

/**
 * Deletes all scheduled backups except the newest `keep`. Unverified backups do not count towards `keep`, so that a
 * damaged backup never causes a good one to be deleted. Returns the names of the deleted backups.
 */
export function keepNewest(directory: string, keep: number): string[] {
  const scheduled = listBackups(directory).filter(({ origin }) => origin === 'scheduled');
  const whole = scheduled.filter(({ verifiedAt }) => verifiedAt !== null);
  const oldest = whole[keep - 1];
  if (oldest === undefined) return [];
  const gone = scheduled.slice(scheduled.indexOf(oldest) + 1);
  for (const { file } of gone) {
    rmSync(file, { force: true });
    rmSync(manifestFile(file), { force: true });
  }
  return gone.map(({ name }) => name);
}

/** Reads the manifest of a backup. Returns undefined if the manifest is missing or invalid. */
export function readManifest(file: string): BackupManifest | undefined {
  try {
    const manifest = JSON.parse(readFileSync(manifestFile(file), 'utf8')) as BackupManifest;
    return manifest.format === 1 ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the manifest of a backup atomically. */
export function writeManifest(file: string, manifest: BackupManifest): void {
  const directory = dirname(file);
  const unfinished = unfinishedFile(directory);
  try {
    writeFileSync(unfinished, `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });
    renameSync(unfinished, manifestFile(file));
    syncToDisk(directory);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Flushes the content of a file, or the entries of a directory, to the disk. */
export function syncToDisk(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function manifestFile(file: string): string {
  return `${file}.json`;
}

/** Returns the size of a file in bytes, or 0 if the file does not exist. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

export interface BackupInput {
  /** The database file. */
  path: string;
  /** Created if missing. */
  directory: string;
  now: number;
  origin: BackupOrigin;
}

export interface MadeBackup extends BackupManifest {
  file: string;
  /** Problems found in the database, and therefore in the backup. A backup with problems does not count as verified. */
  mistakes: string[];
}

export type BackupProgress = { doing: 'copy'; bytes: number; total: number } | { doing: 'check' };

export interface Inspection {
  /** Schema version; 0 if the database has no tables. */
  schema: number;
  /** The newest schema version that this code knows. */
  newest: number;
  counts: BackupCounts;
  /** The fingerprint of the encryption key that the data needs. */
  encryptionKey: string | null;
  /** Problems, as sentences; empty if there are none. */
  mistakes: string[];
}

/** The result of checking a backup file. */
export interface VerifiedBackup extends Inspection {
  file: string;
  bytes: number;
  /** Whether the file matches its manifest; null if it has no manifest. */
  checksumMatches: boolean | null;
}

export interface RestoredBackup extends VerifiedBackup {
  /** The path of the restored database. */
  database: string;
  /** The path to which the previous database was moved; null if there was none. */
  replaced: string | null;
}
