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
  const teams = await store.teams.list();
  const sinceMs = now - Math.min(now, ...teams.map(({ createdAt }) => createdAt));
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
    return ok(everyMs === null ? `${what}, and none is made by itself (FLOWHOOK_BACKUP_EVERY=off)` : what);
  }
  return warning({
    what: everyMs === null ? what : `${what}, and one should be made every ${durationWords(everyMs)}`,
    why: 'What a disk takes with it, or a mistake deletes, since then is gone',
    fix:
      everyMs === null
        ? 'FLOWHOOK_BACKUP_EVERY=24h makes them by itself, `flowhook backup create` one now'
        : 'The log says under backup.failed why not; `flowhook backup create` tries it now',
  });
}

export const newestBackup: Check = ofSettings(
  'backups',
  'newest-backup',
  async (settings, { isFull }, signal) => {
    if (isPostgres(settings.databaseUrl)) return skipped('Not checked', OF_POSTGRES);
    const newest = backupsOf(settings)[0];
    if (newest === undefined) return ok('There is no backup to be checked');
    const manifest = readManifest(newest.file);
    if (manifest === undefined) {
      return skipped(
        `Nothing beside ${newest.name} says what it should be`,
        'It was not made by `flowhook backup create`, or its .json is gone',
        `\`flowhook backup verify ${newest.name}\` reads all of it`,
      );
    }
    if (manifest.bytes !== newest.bytes) return damaged(newest, 'it has another size than it was made with');
    if (manifest.verifiedAt === null)
      return damaged(newest, 'the database was damaged already when it was made');
    const limit = isFull ? signal : AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]);
    const sum = await checksum(newest.file, limit);
    if (sum === undefined) {
      return skipped(
        `${newest.name} was not read to its end`,
        'It is large',
        '`flowhook doctor --full` and `flowhook backup verify` read all of it',
      );
    }
    if (sum !== manifest.sha256) return damaged(newest, 'its bytes are not those that were written');
    return ok(`${newest.name} is byte for byte what was written, and was read as a database then`);
  },
  Number.POSITIVE_INFINITY,
);

function damaged({ name }: ListedBackup, why: string): Result {
  return error({
    what: `The newest backup ${name} is damaged: ${why}`,
    why: 'It cannot be relied on when it is needed',
    fix: 'Make another one with `flowhook backup create`, and look at the disk that it lies on',
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
      what: `The encryption key lies beside the backups (${backupDirectory})`,
      why: 'Whoever gets hold of a backup can then open the secrets in it as well',
      fix: 'Keep the key apart from the backups, and as safely',
    });
  }
  const [data, backups] = await Promise.all([stat(existing(dataDirectory)), stat(existing(backupDirectory))]);
  if (data.dev !== backups.dev)
    return ok(`Backups lie on another disk than the database (${backupDirectory})`);
  const isInside = backupDirectory.startsWith(`${dataDirectory}/`);
  return warning({
    what: isInside
      ? `Backups lie in the data directory, with the database and the encryption key (${backupDirectory})`
      : `Backups lie on the disk of the database (${backupDirectory})`,
    why: 'What happens to that disk happens to all of it',
    fix: 'Set FLOWHOOK_BACKUP_DIRECTORY to another disk, or copy backups elsewhere (restic, rclone), and the key to a third place',
  });
});

/** Newest first. */
function backupsOf(settings: ExaminedSettings): ListedBackup[] {
  return backupDirectories(settings)
    .flatMap(listBackups)
    .sort((a, b) => b.createdAt - a.createdAt);
}
