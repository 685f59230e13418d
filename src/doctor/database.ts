/**
 * Checks of the database: whether it responds, has the right schema, is intact, matches the encryption key, and has
 * backups.
 */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bytesWords, durationWords, listed } from '../std/amounts.ts';
import { backupDirectories, type ListedBackup, listBackups } from '../store/backup-files.ts';
import { isPostgres } from '../store/database-url.ts';
import { findDamage, hearsNotifications } from '../store/open.ts';
import { keyFile, keyFingerprint } from '../teams/encryption-key.ts';
import {
  type Check,
  type ExaminedSettings,
  error,
  ofSettings,
  ofStore,
  ok,
  type Result,
  skipped,
  warning,
} from './check.ts';
import { cannotCreate } from './files.ts';
import { existing } from './machine.ts';

/** Without --full, the search for damage ends after this time. */
const DAMAGE_MS = 30_000;
const ROUNDS = 20;
/** The median response time may be at most this high. Within a data center, a query takes well below a millisecond. */
const FAR_MS = 20;

export const database: Check = ofSettings('database', 'database', async (settings, subject) => {
  const { store, mistake, without, schema } = subject.database;
  if (mistake !== undefined) {
    return error({
      what: mistake,
      why: 'Without its database the service does not start, or responds with 503',
      fix: isPostgres(settings.databaseUrl)
        ? 'Start PostgreSQL, or correct FLOWHOOK_DATABASE'
        : 'Give this user read and write access. If the file is damaged, restore a backup: `flowhook backup list`, `flowhook backup restore NAME --force`',
    });
  }
  if (store === undefined)
    return schema?.found === 0
      ? ok(without ?? 'There is no database yet')
      : skipped('Not opened', without ?? '');
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = performance.now();
    await store.check();
    took.push(performance.now() - from);
  }
  const { kind, version, bytes } = await store.status.database();
  const medianMs = took.sort((a, b) => a - b)[ROUNDS / 2] ?? 0;
  return databaseResult({ kind, version, bytes, medianMs });
});

export function databaseResult(found: {
  kind: 'sqlite' | 'postgres';
  version: string;
  bytes: number;
  medianMs: number;
}): Result {
  const { kind, version, bytes, medianMs } = found;
  const what = `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${version}, ${bytesWords(bytes)}, median response time ${medianMs.toFixed(2)} ms`;
  if (medianMs <= FAR_MS) return ok(what);
  return warning({
    what,
    why: 'Every request waits for several queries',
    fix: 'Move the service and the database closer together, or reduce the load on the database',
  });
}

export const schema: Check = ofSettings('database', 'schema', (_settings, subject) => {
  const { schema: found } = subject.database;
  if (found === undefined) return skipped('Not checked', 'The database cannot be read');
  if (found.found > found.newest) {
    return error({
      what: `The schema is at version ${found.found}, but this flowhook supports versions up to ${found.newest}`,
      why: 'A newer flowhook has migrated the database, and this older flowhook does not start on it',
      fix: 'Run the newer flowhook, or restore the backup that it made before the migration: `flowhook backup list`',
    });
  }
  if (found.found === 0)
    return ok(`There are no tables yet: the first start creates the schema at version ${found.newest}`);
  if (found.waiting.length === 0) return ok(`The schema is at version ${found.found}, the newest version`);
  return warning({
    what: `The schema is at version ${found.found}, with pending migrations: ${listed(found.waiting)}`,
    why: 'The next start runs them, on SQLite after a backup. Until then, most checks are skipped',
    fix: 'To run them now, use `flowhook migrate up`',
  });
});

export const damage: Check = {
  ...ofStore('database', 'integrity', async (_store, { databaseUrl }, { isFull }, signal) => {
    if (isPostgres(databaseUrl) && !isFull) {
      return skipped(
        'Not read',
        'PostgreSQL checks its own files',
        'To read all records, run `flowhook doctor --full`',
      );
    }
    const ending = new AbortController();
    signal.addEventListener('abort', () => ending.abort(), { once: true });
    const timer = isFull ? undefined : setTimeout(() => ending.abort(), DAMAGE_MS);
    try {
      const mistakes = await findDamage(databaseUrl, { full: isFull, signal: ending.signal });
      if (mistakes === undefined) {
        return skipped(
          `No damage found in the first ${DAMAGE_MS / 1_000} s; the rest of the database was not read`,
          'The database is large',
          'To read the whole database, run `flowhook doctor --full`',
        );
      }
      return damageResult(mistakes, isFull);
    } finally {
      clearTimeout(timer);
    }
  }),
  limitMs: Number.POSITIVE_INFINITY,
};

function damageResult(mistakes: readonly string[], isFull: boolean): Result {
  if (mistakes.length === 0) {
    return ok(isFull ? 'Every table, index and published version is intact' : 'Every table is readable');
  }
  return error({
    what: `The database is damaged: ${listed(mistakes)}`,
    why: 'Unreadable data is lost, and further writes may damage more data',
    fix:
      'Stop the service, copy the data directory, and restore a backup: `flowhook backup list`, ' +
      '`flowhook backup restore NAME --force`. Then check the disk. Typical causes are a failing disk and copying a database that is in use',
  });
}

export const encryptionKey: Check = ofStore('database', 'encryption-key', async (store, settings) => {
  const expected = await store.instance.get({ name: 'encryption_key' });
  let here: string | undefined;
  try {
    here = keyFingerprint(settings);
  } catch (cause) {
    return wrongKey(`The encryption key cannot be read: ${(cause as Error).message}`, expected, settings);
  }
  if (expected === undefined) {
    return isPostgres(settings.databaseUrl) && here === undefined
      ? wrongKey(
          'There is no encryption key. On PostgreSQL, all nodes need the same key',
          undefined,
          settings,
        )
      : ok('Nothing is encrypted yet: the first start records the key');
  }
  if (here === expected)
    return ok(`The encryption key (fingerprint ${here}) is the one that encrypted the secrets`);
  return wrongKey(
    here === undefined
      ? 'The encryption key of this database is missing'
      : `The encryption key here (fingerprint ${here}) is not the one that encrypted the secrets`,
    expected,
    settings,
  );
});

/**
 * @param expected the fingerprint of the key that encrypted the secrets; undefined if there are no encrypted secrets
 */
function wrongKey(what: string, expected: string | undefined, place: { dataDirectory: string }): Result {
  const key = expected === undefined ? 'a valid key' : `the key with fingerprint ${expected}`;
  return error({
    what,
    why: 'Webhooks cannot be signed, and the service does not start',
    fix: `Set FLOWHOOK_ENCRYPTION_KEY to ${key}, or save it as ${keyFile(place)}`,
  });
}

export const notifications: Check = ofStore('database', 'notifications', async (_store, settings) => {
  if (!isPostgres(settings.databaseUrl))
    return skipped('Not checked', 'Only nodes on PostgreSQL notify each other');
  if (!settings.databaseListen)
    return ok('Nodes poll for changes every second (FLOWHOOK_DATABASE_LISTEN=off)');
  if (await hearsNotifications(settings.databaseUrl))
    return ok('Nodes notify each other immediately (LISTEN/NOTIFY)');
  return warning({
    what: 'LISTEN/NOTIFY does not work, probably because of a transaction pooler',
    why: 'Jobs that another node queues start up to 1 s later. Nothing is lost',
    fix: 'Point FLOWHOOK_DATABASE at PostgreSQL itself, or set FLOWHOOK_DATABASE_LISTEN=off to stop trying',
  });
});

const DAY_MS = 24 * 3_600_000;
/**
 * Without a backup schedule, the newest backup may be at most this old. A database without backups may also be at most
 * this old.
 */
const OLD_MS = 7 * DAY_MS;
/** Extra time for a backup that is still being made or retried. */
const PATIENCE_MS = 3_600_000;
const POSTGRES_TOOLS =
  'PostgreSQL has its own backup tools (/docs/guide/operate/backup.html on a running server)';

export const backupAge: Check = ofStore('backups', 'backup-age', async (store, settings) => {
  if (isPostgres(settings.databaseUrl)) return skipped('Not checked', POSTGRES_TOOLS);
  const now = store.now();
  const [oldest] = await store.teams.list({ limit: 1 });
  const sinceMs = now - Math.min(now, oldest?.createdAt ?? now);
  const newest = backupsOf(settings)[0];
  const ageMs = newest === undefined ? null : now - newest.createdAt;
  return backupAgeResult({ everyMs: settings.backupEveryMs, ageMs, sinceMs });
});

/**
 * @param found.ageMs the age of the newest backup; null when there is no backup
 * @param found.sinceMs the age of the data, for the case that there is no backup
 */
export function backupAgeResult(found: {
  everyMs: number | null;
  ageMs: number | null;
  sinceMs: number;
}): Result {
  const { everyMs, ageMs, sinceMs } = found;
  const late = (everyMs === null ? OLD_MS : everyMs) + PATIENCE_MS;
  const what = ageMs === null ? 'There is no backup' : `The newest backup is ${durationWords(ageMs)} old`;
  if (ageMs === null && sinceMs <= late) {
    return everyMs === null
      ? skipped(
          'There is no backup',
          'The data is new',
          'Set FLOWHOOK_BACKUP_EVERY=24h, or run `flowhook backup create`',
        )
      : skipped('There is no backup', `The first is due within ${durationWords(everyMs)} of the first start`);
  }
  if (ageMs !== null && ageMs <= late) {
    return ok(everyMs === null ? `${what}; automatic backups are off (FLOWHOOK_BACKUP_EVERY=off)` : what);
  }
  return warning({
    what: everyMs === null ? what : `${what}; FLOWHOOK_BACKUP_EVERY is ${durationWords(everyMs)}`,
    why: 'After a disk failure or an accidental deletion, all data without a backup is lost',
    fix:
      everyMs === null
        ? 'Set FLOWHOOK_BACKUP_EVERY=24h, and run `flowhook backup create` now'
        : 'Search the log for backup.failed, and try `flowhook backup create`',
  });
}

export const backupPlace: Check = ofSettings('backups', 'backup-place', async (settings) => {
  if (isPostgres(settings.databaseUrl)) return skipped('Not checked', POSTGRES_TOOLS);
  const { backupDirectory, dataDirectory, backupEveryMs } = settings;
  if (backupEveryMs !== null && !existsSync(backupDirectory)) {
    const problem = await cannotCreate(backupDirectory, 'FLOWHOOK_BACKUP_DIRECTORY');
    if (problem !== undefined) return problem;
  }
  const made = backupsOf(settings).filter(({ origin }) => origin !== 'migration');
  if (made.length === 0 && backupEveryMs === null) return skipped('Not checked', 'There is no backup');
  if (existsSync(join(backupDirectory, basename(keyFile(settings))))) {
    return warning({
      what: `The encryption key is stored with the backups (${backupDirectory})`,
      why: 'Anyone who gets a backup can then decrypt its secrets',
      fix: 'Store the key in another safe place',
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
    why: 'If that disk fails, the database and its backups are lost',
    fix: 'Set FLOWHOOK_BACKUP_DIRECTORY to another disk, or copy the backups to another machine (restic, rclone), and the key to a third place',
  });
});

/** Newest first. */
function backupsOf(settings: ExaminedSettings): ListedBackup[] {
  return backupDirectories(settings)
    .flatMap(listBackups)
    .sort((a, b) => b.createdAt - a.createdAt);
}
