/** Finds or creates the encryption key, and checks that it is the key with which the database was sealed. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSealer, type Sealer } from '../std/seal.ts';
import { isPostgres } from '../store/database-url.ts';
import type { Store } from '../store/store.ts';

/** The settings that determine the key. */
export interface KeyPlace {
  databaseUrl: string;
  /** 32 bytes, when set; otherwise a key file in the data directory is used, and created once. */
  encryptionKey: Buffer | undefined;
  dataDirectory: string;
}

/**
 * Opens the sealer of secrets, with the key that sealed those in the database.
 *
 * @throws Error when the key is missing or another one, or when on PostgreSQL each node would create its own
 */
export async function openSealer(place: KeyPlace, store: Store): Promise<Sealer> {
  if (place.encryptionKey === undefined && isPostgres(place.databaseUrl)) {
    throw new Error(
      'With PostgreSQL every node needs the same encryption key: set FLOWHOOK_ENCRYPTION_KEY, or name its file with ' +
        'FLOWHOOK_ENCRYPTION_KEY_FILE. `openssl rand -base64 32` makes one; keep it as safely as the database',
    );
  }
  const expected = await store.instance.get({ name: 'encryption_key' });
  if (expected !== undefined && place.encryptionKey === undefined && !existsSync(keyFile(place))) {
    throw new Error(
      `The encryption key of this database is missing. Put back its file ${keyFile(place)}, or set ` +
        `FLOWHOOK_ENCRYPTION_KEY to the key with the fingerprint ${expected}`,
    );
  }
  const sealer = createSealer(place.encryptionKey ?? ownKey(place));
  const stored = await store.instance.claim({ name: 'encryption_key', value: sealer.fingerprint });
  if (stored !== sealer.fingerprint) {
    throw new Error(
      `The encryption key does not fit this database: its fingerprint is ${sealer.fingerprint}, the database was ` +
        `sealed with ${stored}. Set FLOWHOOK_ENCRYPTION_KEY to the key used before, or put back its file ` +
        `${keyFile(place)}`,
    );
  }
  return sealer;
}

/** The fingerprint of the key; undefined when there is none yet. Creates no key. */
export function keyFingerprint(place: KeyPlace): string | undefined {
  if (place.encryptionKey !== undefined) return createSealer(place.encryptionKey).fingerprint;
  return existsSync(keyFile(place)) ? createSealer(ownKey(place)).fingerprint : undefined;
}

/** The path of the key file that is used when no key is set. */
export function keyFile(place: Pick<KeyPlace, 'dataDirectory'>): string {
  return join(place.dataDirectory, 'encryption.key');
}

function ownKey(place: KeyPlace): Buffer {
  const path = keyFile(place);
  if (!existsSync(path)) {
    // Flushed, so that it is on the disk before the database commits its fingerprint: without it all secrets are lost.
    writeFileSync(path, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  }
  const key = Buffer.from(textOf(path).trim(), 'base64');
  if (key.length !== 32) throw new Error(`${path} does not hold an encryption key: 32 bytes as base64`);
  return key;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Error(
      `The encryption key cannot be read: ${(cause as Error).message}. Let this user read its file, or set FLOWHOOK_ENCRYPTION_KEY`,
      { cause },
    );
  }
}
