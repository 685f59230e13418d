/** Backup files: their names, the manifest beside each, listing a directory, deleting old ones. */
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

/** What made it. Only scheduled ones are deleted automatically. */
export type BackupOrigin = 'command' | 'scheduled' | 'migration';

/** Numbers of rows, of all teams. */
export interface BackupCounts {
  teams: number;
  workflows: number;
  jobs: number;
  /** Rows of all kept versions. */
  records: number;
  events: number;
  webhooks: number;
  deliveries: number;
}

/** The file beside a backup, named like it with `.json` appended. */
export interface BackupManifest {
  format: 1;
  /** When it was begun: everything acknowledged before that is in it. ISO 8601. */
  createdAt: string;
  origin: BackupOrigin;
  /** Its schema version. */
  schema: number;
  bytes: number;
  /** Of the whole file, in hexadecimal. */
  sha256: string;
  /** The fingerprint of the encryption key that it needs; null when nothing was ever sealed. Never the key. */
  encryptionKey: string | null;
  counts: BackupCounts;
  /** When it was verified; null if something is wrong with it. ISO 8601. */
  verifiedAt: string | null;
}

/** A backup found in a directory. */
export interface ListedBackup {
  name: string;
  file: string;
  /** Epoch milliseconds, to the second, from its name. */
  createdAt: number;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /** From its manifest; null if that is missing or is about a file of another size. ISO 8601. */
  verifiedAt: string | null;
}

/** Prefix of files that are still being written. */
const UNFINISHED = '.unfinished-';
const NAME = /^flowhook-(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z-v(\d+)(?:-(scheduled|migration))?\.db$/;

/** Whether this is the name of one of our backups. */
export function isBackupName(name: string): boolean {
  return NAME.test(name);
}

/** Such as `flowhook-2026-11-21T040503Z-v8.db`; made by a migration, `…-v8-migration.db`. */
export function backupName(made: { createdAt: number; schema: number; origin: BackupOrigin }): string {
  const time = toIso(made.createdAt).slice(0, 19).replaceAll(':', '');
  const ending = made.origin === 'command' ? '' : `-${made.origin}`;
  return `flowhook-${time}Z-v${made.schema}${ending}.db`;
}

/** A new hidden path in the directory, for a file that is still being written. */
export function unfinishedFile(directory: string): string {
  return join(directory, `${UNFINISHED}${randomUUID()}`);
}

/** Removes files left unfinished by a process that died, and manifests whose backups are gone. */
export function sweepUnfinished(directory: string): void {
  const names = new Set(readdirSync(directory));
  for (const name of names) {
    const backup = name.slice(0, -'.json'.length);
    const isLeft = name.endsWith('.json') && isBackupName(backup) && !names.has(backup);
    if (isLeft || name.startsWith(UNFINISHED)) rmSync(join(directory, name), { force: true });
  }
}

/**
 * Where the backups of a database may be: where they are written, and beside an SQLite file, where migrations put
 * theirs.
 */
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
 * Deletes all scheduled backups but the newest `keep`. Unverified ones do not count towards those, so that they never
 * displace a good one. Returns the names of the deleted ones.
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

/** The manifest of a backup; undefined if it is missing or not understood. */
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
    syncDirectory(directory);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Flushes a file's content to the disk. */
export function syncFile(file: string): void {
  const fd = openSync(file, 'r+');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Flushes a directory's entries to the disk. */
export function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function manifestFile(file: string): string {
  return `${file}.json`;
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

/** A backup that was made. */
export interface MadeBackup extends BackupManifest {
  file: string;
  /** What is wrong with the database, and so with the backup, which then is not verified. */
  mistakes: string[];
}

/** The progress of making a backup. */
export type BackupProgress = { doing: 'copy'; bytes: number; total: number } | { doing: 'check' };

/** The result of checking a whole database. */
export interface Inspection {
  /** Its schema version; 0 when it has no tables. */
  schema: number;
  /** The newest schema version that this code knows. */
  newest: number;
  counts: BackupCounts;
  /** The fingerprint of the encryption key that it needs. */
  encryptionKey: string | null;
  /** What is wrong, as sentences; empty if nothing is. */
  mistakes: string[];
}

/** The same for a backup file. */
export interface VerifiedBackup extends Inspection {
  file: string;
  bytes: number;
  /** Whether the bytes match the manifest; null without a manifest. */
  checksumMatches: boolean | null;
}

/** A backup that was restored. */
export interface RestoredBackup extends VerifiedBackup {
  /** The path of the restored database. */
  database: string;
  /** Where the previous database was moved to; null if there was none. */
  replaced: string | null;
}
