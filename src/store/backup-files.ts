/** Backup files: names, the manifest beside each, listing a directory, deleting old ones. */
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

/** What made the backup. Only scheduled backups are deleted automatically. */
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
  /** When the backup started: it contains everything acknowledged before. ISO 8601. */
  createdAt: string;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /** SHA-256 of the whole file, in hexadecimal. */
  sha256: string;
  /** The fingerprint of the encryption key that the backup needs; null if it holds nothing encrypted. Never the key. */
  encryptionKey: string | null;
  counts: BackupCounts;
  /** When the backup was verified; null if it is damaged. ISO 8601. */
  verifiedAt: string | null;
}

/** A backup found in a directory. */
export interface ListedBackup {
  name: string;
  file: string;
  /** Epoch milliseconds, rounded to a second: taken from the name. */
  createdAt: number;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /** From the manifest; null if that is missing or describes a file of another size. ISO 8601. */
  verifiedAt: string | null;
}

/** Prefix of files that are still being written. */
const UNFINISHED = '.unfinished-';
const NAME = /^flowhook-(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z-v(\d+)(?:-(scheduled|migration))?\.db$/;

export function isBackupName(name: string): boolean {
  return NAME.test(name);
}

/** For example `flowhook-2026-11-21T040503Z-v8.db`, or `…-v8-migration.db` for one made by a migration. */
export function backupName(made: { createdAt: number; schema: number; origin: BackupOrigin }): string {
  const time = toIso(made.createdAt).slice(0, 19).replaceAll(':', '');
  const ending = made.origin === 'command' ? '' : `-${made.origin}`;
  return `flowhook-${time}Z-v${made.schema}${ending}.db`;
}

/** A new hidden path in the directory, for a file that is still being written. */
export function unfinishedFile(directory: string): string {
  return join(directory, `${UNFINISHED}${randomUUID()}`);
}

/** Removes unfinished files of processes that died, and manifests without a backup. */
export function sweepUnfinished(directory: string): void {
  const names = new Set(readdirSync(directory));
  for (const name of names) {
    const backup = name.slice(0, -'.json'.length);
    const isLeft = name.endsWith('.json') && isBackupName(backup) && !names.has(backup);
    if (isLeft || name.startsWith(UNFINISHED)) rmSync(join(directory, name), { force: true });
  }
}

/** The directories that may hold backups of a database: the configured one and, on SQLite, the one for migrations. */
export function backupDirectories(config: { backupDirectory: string; databaseUrl: string }): string[] {
  const { backupDirectory, databaseUrl } = config;
  if (!databaseUrl.startsWith('sqlite:')) return [backupDirectory];
  return [...new Set([backupDirectory, join(dirname(databaseUrl.slice('sqlite:'.length)), 'backups')])];
}

/** The backups in a directory, newest first; empty if it does not exist. */
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
 * Deletes all scheduled backups except the newest `keep`. Unverified backups do not count towards `keep`, so that they
 * never displace a good one. Returns the names of the deleted backups.
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

/** The manifest of a backup; undefined if it is missing or invalid. */
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

/** Flushes a file's content, or a directory's entries, to the disk. */
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

/** The size of a file in bytes; 0 if it does not exist. */
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

/** A new backup. */
export interface MadeBackup extends BackupManifest {
  file: string;
  /** Problems found in the database, and so in the backup; a backup with problems is not verified. */
  mistakes: string[];
}

/** The progress of making a backup. */
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
  /** Whether the file matches its manifest; null without a manifest. */
  checksumMatches: boolean | null;
}

export interface RestoredBackup extends VerifiedBackup {
  /** The path of the restored database. */
  database: string;
  /** Where the previous database was moved to; null if there was none. */
  replaced: string | null;
}
