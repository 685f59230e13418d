/** The files of backups: what they are called, what is written beside them, and what lies in a directory. */
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

/** Who had it made. Only those of the schedule are deleted by themselves. */
export type BackupOrigin = 'command' | 'scheduled' | 'migration';

/** How many rows there are, of all teams. */
export interface BackupCounts {
  teams: number;
  workflows: number;
  jobs: number;
  /** Rows of every version that is kept, as in the tables. */
  records: number;
  events: number;
  webhooks: number;
  deliveries: number;
}

/** What stands in the file beside a backup, which is called the same with `.json` behind it. */
export interface BackupManifest {
  format: 1;
  /** When it was begun: what was answered before is in it. ISO 8601. */
  createdAt: string;
  origin: BackupOrigin;
  /** The version of its tables. */
  schema: number;
  bytes: number;
  /** Of the whole file, in hexadecimal. */
  sha256: string;
  /** The fingerprint of the encryption key that it needs; null when nothing was ever sealed. Never the key. */
  encryptionKey: string | null;
  counts: BackupCounts;
  /** When all of it was last read and found to be whole; null when it was not. ISO 8601. */
  verifiedAt: string | null;
}

/** One backup as a directory shows it. */
export interface ListedBackup {
  name: string;
  file: string;
  /** Epoch milliseconds, by its name to the second. */
  createdAt: number;
  origin: BackupOrigin;
  schema: number;
  bytes: number;
  /** As in its manifest; null as well when there is none, or it tells of a file of another size. ISO 8601. */
  verifiedAt: string | null;
}

/** Who waits for a backup to be made sees no name that begins so. */
const UNFINISHED = '.unfinished-';
const NAME = /^flowhook-(\d{4}-\d\d-\d\dT)(\d\d)(\d\d)(\d\d)Z-v(\d+)(?:-(scheduled|migration))?\.db$/;

/** Whether a file that is called so is a backup of ours. */
export function isBackupName(name: string): boolean {
  return NAME.test(name);
}

/** `flowhook-2026-11-21T040503Z-v8.db`, of a migration `…-v8-migration.db`. */
export function backupName(made: { createdAt: number; schema: number; origin: BackupOrigin }): string {
  const time = toIso(made.createdAt).slice(0, 19).replaceAll(':', '');
  const ending = made.origin === 'command' ? '' : `-${made.origin}`;
  return `flowhook-${time}Z-v${made.schema}${ending}.db`;
}

/** A name in the directory under which nobody finds what is being written. */
export function unfinishedFile(directory: string): string {
  return join(directory, `${UNFINISHED}${randomUUID()}`);
}

/** Removes what was being written when its process died, and manifests whose backups are gone. */
export function sweepUnfinished(directory: string): void {
  const names = new Set(readdirSync(directory));
  for (const name of names) {
    const backup = name.slice(0, -'.json'.length);
    const isLeft = name.endsWith('.json') && isBackupName(backup) && !names.has(backup);
    if (isLeft || name.startsWith(UNFINISHED)) rmSync(join(directory, name), { force: true });
  }
}

/** The backups in a directory, newest first; none when it is not there. */
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
 * Deletes scheduled backups but the newest so many; those that are not known to be whole do not count, so that they
 * never take the place of one that is. Answers the names of those that went.
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

/** What stands beside a backup; nothing when it is not there or cannot be understood. */
export function readManifest(file: string): BackupManifest | undefined {
  try {
    const manifest = JSON.parse(readFileSync(manifestFile(file), 'utf8')) as BackupManifest;
    return manifest.format === 1 ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/** Puts a manifest beside a backup, whole or not at all. */
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

/** Has the disk keep which files there are. */
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
