/** The database: whether it can be reached, has the right tables, is undamaged, and fits the encryption key. */
import { bytesWords } from '../std/amounts.ts';
import { isPostgres } from '../store/database-url.ts';
import { findDamage, hearsNotifications } from '../store/open.ts';
import { keyFile, keyFingerprint } from '../teams/encryption-key.ts';
import { type Check, error, ofSettings, ofStore, ok, type Result, skipped, warning } from './check.ts';
import { listed } from './listed.ts';

/** How long the search for damage may take unless --full is given. */
const DAMAGE_MS = 30_000;
const ROUNDS = 20;
/** Within a data centre a query takes well below a millisecond. */
const FAR_MS = 20;
/** The log is checkpointed at 16 MB: it grows beyond that only during long reads. */
const LARGE_LOG_BYTES = 512_000_000;

export const database: Check = ofSettings('database', 'database', async (settings, subject) => {
  const { store, mistake, without, schema } = subject.database;
  if (mistake !== undefined) {
    return error({
      what: mistake,
      why: 'Without its database the service does not start, and answers nothing but 503',
      fix: isPostgres(settings.databaseUrl)
        ? 'Start PostgreSQL, or correct FLOWHOOK_DATABASE'
        : 'Let this user read and write it. If it is damaged, put back a backup: `flowhook backup list`, `flowhook backup restore NAME --force`',
    });
  }
  if (store === undefined)
    return schema?.found === 0 ? ok(without ?? 'There is none yet') : skipped('Not opened', without ?? '');
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
  const what = `${kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${version}, ${bytesWords(bytes)}, answers within ${medianMs.toFixed(2)} ms (median)`;
  if (medianMs <= FAR_MS) return ok(what);
  return warning({
    what,
    why: 'Every request takes several such answers one after the other',
    fix: 'Bring the service and the database closer together, or find out what keeps the database busy',
  });
}

export const schema: Check = ofSettings('database', 'schema', (_settings, subject) => {
  const { schema: found } = subject.database;
  if (found === undefined) return skipped('Not checked', 'The database could not be looked at');
  if (found.found > found.newest) {
    return error({
      what: `The tables have version ${found.found}, and this flowhook knows versions up to ${found.newest}`,
      why: 'It was used by a newer flowhook; this one does not start on it',
      fix: 'Run the newer flowhook, or restore the backup that it made before it migrated: `flowhook backup list`',
    });
  }
  if (found.found === 0)
    return ok(`There are no tables yet: the first start makes those of version ${found.newest}`);
  if (found.waiting.length === 0) return ok(`The tables have version ${found.found}, the newest`);
  return warning({
    what: `The tables have version ${found.found}, and these migrations wait: ${listed(found.waiting)}`,
    why: 'The next start runs them, after a backup on SQLite; most of the checks here need the new tables',
    fix: '`flowhook migrate up` runs them now',
  });
});

export const damage: Check = ofStore(
  'database',
  'integrity',
  async (_store, { databaseUrl }, { isFull }, signal) => {
    if (isPostgres(databaseUrl) && !isFull) {
      return skipped(
        'Not read',
        'PostgreSQL watches over its own files',
        '`flowhook doctor --full` reads all records',
      );
    }
    const ending = new AbortController();
    signal.addEventListener('abort', () => ending.abort(), { once: true });
    const timer = isFull ? undefined : setTimeout(() => ending.abort(), DAMAGE_MS);
    try {
      const mistakes = await findDamage(databaseUrl, { full: isFull, signal: ending.signal });
      if (mistakes === undefined) {
        return skipped(
          `Nothing wrong was found in the first ${DAMAGE_MS / 1_000} s, and then it was given up`,
          'The database is large',
          '`flowhook doctor --full` reads all of it, however long that takes',
        );
      }
      return damageResult(mistakes, isFull);
    } finally {
      clearTimeout(timer);
    }
  },
  Number.POSITIVE_INFINITY,
);

function damageResult(mistakes: readonly string[], isFull: boolean): Result {
  if (mistakes.length === 0) {
    return ok(
      isFull ? 'Every table, index and published version is whole' : 'Every page and table can be read',
    );
  }
  return error({
    what: `The database is damaged: ${listed(mistakes)}`,
    why: 'What cannot be read is lost, and writing on may lose more',
    fix:
      'Stop the service, keep a copy of the data directory, and put back a backup: `flowhook backup list`, ' +
      '`flowhook backup restore NAME --force`. Then look at the disk: files are damaged by disks, and by copying open ones',
  });
}

export const log: Check = ofStore('database', 'write-ahead-log', async (store) => {
  const { walBytes } = await store.status.database();
  if (walBytes === null) return skipped('Not checked', 'PostgreSQL looks after its own');
  return logResult(walBytes);
});

export function logResult(bytes: number): Result {
  const what = `The write-ahead log has ${bytesWords(bytes)}`;
  if (bytes <= LARGE_LOG_BYTES) return ok(what);
  return warning({
    what,
    why: 'It grows while a program holds an old state open for reading: reads become slower, and the disk fills',
    fix: 'End other programs that have the file open (sqlite3, a copy, a backup tool), or restart the service',
  });
}

export const encryptionKey: Check = ofStore('database', 'encryption-key', async (store, settings) => {
  const expected = await store.instance.get({ name: 'encryption_key' });
  let here: string | undefined;
  try {
    here = keyFingerprint(settings);
  } catch (cause) {
    return wrongKey(
      `The encryption key cannot be read: ${(cause as Error).message}`,
      expected ?? 'unknown',
      settings,
    );
  }
  if (expected === undefined) {
    return isPostgres(settings.databaseUrl) && here === undefined
      ? wrongKey('There is no encryption key, and with PostgreSQL every node needs the same', 'any', settings)
      : ok('Nothing is sealed yet: the first start notes which key is used');
  }
  if (here === expected)
    return ok(`The encryption key (fingerprint ${here}) is the one that sealed the secrets`);
  return wrongKey(
    here === undefined
      ? 'The encryption key of this database is not here'
      : `The encryption key here (fingerprint ${here}) is not the one that sealed the secrets`,
    expected,
    settings,
  );
});

function wrongKey(what: string, expected: string, place: { dataDirectory: string }): Result {
  return error({
    what,
    why: 'No webhook can be signed, and the service does not start',
    fix: `Set FLOWHOOK_ENCRYPTION_KEY to the key with the fingerprint ${expected}, or put it back as ${keyFile(place)}`,
  });
}

export const notifications: Check = ofStore('database', 'notifications', async (_store, settings) => {
  if (!isPostgres(settings.databaseUrl))
    return skipped('Not checked', 'Only nodes on PostgreSQL tell each other');
  if (!settings.databaseListen) return ok('Nodes look for news every second (FLOWHOOK_DATABASE_LISTEN=off)');
  if (await hearsNotifications(settings.databaseUrl))
    return ok('Nodes hear each other at once (LISTEN, NOTIFY)');
  return warning({
    what: 'What one connection notifies another one does not hear: a pooler hands connections around in between',
    why: 'Jobs that another node has queued start up to a second later; nothing is lost',
    fix: 'Name PostgreSQL itself in FLOWHOOK_DATABASE, or set FLOWHOOK_DATABASE_LISTEN=off, which saves trying',
  });
});
