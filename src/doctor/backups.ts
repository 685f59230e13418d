/** Backups: whether there is a recent one, whether it is undamaged, and whether it would be lost with the database. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { durationWords } from '../std/amounts.ts';
import { backupDirectories, type ListedBackup, listBackups, readManifest } from '../store/backup-files.ts';
import { isPostgres } from '../store/database-url.ts';
import { keyFile } from '../teams/encryption-key.ts';
import { type Check, error, ofSettings, ofStore, ok, type Result, skipped, warning } from './check.ts';
import { existing } from './disk.ts';
import type { ExaminedSettings } from './subject.ts';

const DAY_MS = 24 * 3_600_000;
/** Without a schedule: the age at which a database should have a backup, and a backup a successor. */
const OLD_MS = 7 * DAY_MS;
/** Allows for a backup that is being made or retried. */
const PATIENCE_MS = 3_600_000;
/** After this time, reading a large backup is given up unless --full is given. */
const READ_MS = 10_000;

const OF_POSTGRES = 'PostgreSQL is backed up with its own tools (docs/operate/backup.md)';

export const backupAge: Check = ofStore('backups', 'backup-age', async (store, settings) => {
  if (isPostgres(settings.databaseUrl)) return skipped('Not checked', OF_POSTGRES);
  const now = store.now();
  const [oldest] = await store.teams.list({ limit: 1 });
  const sinceMs = now - Math.min(now, oldest?.createdAt ?? now);
  const newest = backupsOf(settings)[0];
  const ageMs = newest === undefined ? null : now - newest.createdAt;
  return backupAgeResult({ everyMs: settings.backupEveryMs, ageMs, sinceMs });
});

/**
 * @param found.ageMs of the newest backup; null when there is none
 * @param found.sinceMs how long there have been data to lose
 */
export function backupAgeResult(found: {
  everyMs: number | null;
  ageMs: number | null;
  sinceMs: number;
}): Result {
  const { everyMs, ageMs, sinceMs } = found;
  const late = (everyMs === null ? OLD_MS : everyMs) + PATIENCE_MS;
  const what = ageMs === null ? 'There is no backup' : `The newest backup is ${durationWords(ageMs)} old`;
  if ((ageMs ?? sinceMs) <= late) {
    return ok(everyMs === null ? `${what}; automatic backups are off (FLOWHOOK_BACKUP_EVERY=off)` : what);
  }
  return warning({
    what: everyMs === null ? what : `${what}; FLOWHOOK_BACKUP_EVERY is ${durationWords(everyMs)}`,
    why: 'A failed disk or a mistaken deletion loses everything not backed up',
    fix:
      everyMs === null
        ? 'Set FLOWHOOK_BACKUP_EVERY=24h, and run `flowhook backup create` now'
        : 'Look for backup.failed in the log, and try `flowhook backup create`',
  });
}

export const newestBackup: Check = ofSettings(
  'backups',
  'newest-backup',
  async (settings, { isFull }, signal) => {
    if (isPostgres(settings.databaseUrl)) return skipped('Not checked', OF_POSTGRES);
    const newest = backupsOf(settings)[0];
    if (newest === undefined) return ok('There is no backup to check');
    const manifest = readManifest(newest.file);
    if (manifest === undefined) {
      return skipped(
        `${newest.name} has no manifest`,
        'It was not made by `flowhook backup create`, or its .json file is gone',
        `\`flowhook backup verify ${newest.name}\` reads all of it`,
      );
    }
    if (manifest.bytes !== newest.bytes) return damaged(newest, 'its size has changed');
    if (manifest.verifiedAt === null)
      return damaged(newest, 'the database was already damaged when it was made');
    const limit = isFull ? signal : AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);
    const sum = await checksum(newest.file, limit);
    if (sum === undefined) {
      return skipped(
        `${newest.name} was only partly read`,
        'It is large',
        '`flowhook doctor --full` and `flowhook backup verify` read all of it',
      );
    }
    if (sum !== manifest.sha256) return damaged(newest, 'its checksum does not match');
    return ok(`${newest.name} is unchanged since it was made and verified`);
  },
  Number.POSITIVE_INFINITY,
);

function damaged({ name }: ListedBackup, why: string): Result {
  return error({
    what: `The newest backup ${name} is damaged: ${why}`,
    why: 'It may not be restorable',
    fix: 'Make a new one with `flowhook backup create`, and check the disk it is on',
  });
}

/** SHA-256 in hexadecimal; undefined when the signal was aborted before the end. */
async function checksum(file: string, signal: AbortSignal): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1_048_576, signal }))
      hash.update(chunk);
    return hash.digest('hex');
  } catch (cause) {
    if (signal.aborted) return undefined;
    throw cause;
  }
}

export const backupPlace: Check = ofSettings('backups', 'backup-place', async (settings) => {
  if (isPostgres(settings.databaseUrl)) return skipped('Not checked', OF_POSTGRES);
  const made = backupsOf(settings).filter(({ origin }) => origin !== 'migration');
  if (made.length === 0 && settings.backupEveryMs === null) return ok('There are no backups yet');
  const { backupDirectory, dataDirectory } = settings;
  if (existsSync(join(backupDirectory, basename(keyFile(settings))))) {
    return warning({
      what: `The encryption key is stored with the backups (${backupDirectory})`,
      why: 'Anyone who obtains a backup can then decrypt its secrets too',
      fix: 'Store the key elsewhere, just as safely',
    });
  }
  const [data, backups] = await Promise.all([stat(existing(dataDirectory)), stat(existing(backupDirectory))]);
  if (data.dev !== backups.dev)
    return ok(`Backups and the database are on different disks (${backupDirectory})`);
  const isInside = backupDirectory.startsWith(`${dataDirectory}/`);
  return warning({
    what: isInside
      ? `Backups are in the data directory, with the database and the encryption key (${backupDirectory})`
      : `Backups are on the same disk as the database (${backupDirectory})`,
    why: 'If that disk fails, all of it is lost',
    fix: 'Set FLOWHOOK_BACKUP_DIRECTORY to another disk, or copy backups elsewhere (restic, rclone) and the key to a third place',
  });
});

/** Newest first. */
function backupsOf(settings: ExaminedSettings): ListedBackup[] {
  return backupDirectories(settings)
    .flatMap(listBackups)
    .sort((a, b) => b.createdAt - a.createdAt);
}
