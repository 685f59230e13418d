/** Finds or creates the encryption key, and checks that it matches the database. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSealer, type Sealer } from '../std/seal.ts';
import { isPostgres } from '../store/database-url.ts';
import type { Store } from '../store/store.ts';

/** The settings that determine the key. */
export interface KeyPlace {
  databaseUrl: string;
  /** A configured key of 32 bytes. If undefined, a key file in the data directory is used, and created if necessary. */
  encryptionKey: Buffer | undefined;
  dataDirectory: string;
}

/**
 * Opens the sealer with the key that encrypted the secrets in the database.
 *
 * @throws Error if the key is missing or wrong, or if PostgreSQL is used without a configured key, because each node
 *   would create its own
 */
export async function openSealer(place: KeyPlace, store: Store): Promise<Sealer> {
  if (place.encryptionKey === undefined && isPostgres(place.databaseUrl)) {
    throw new Error(
      'With PostgreSQL, all nodes need the same encryption key: set FLOWHOOK_ENCRYPTION_KEY, or ' +
        'FLOWHOOK_ENCRYPTION_KEY_FILE to its file. `openssl rand -base64 32` creates a key; back it up like the database',
    );
  }
  const expected = await store.instance.get({ name: 'encryption_key' });
  if (expected !== undefined && place.encryptionKey === undefined && !existsSync(keyFile(place))) {
    throw new Error(
      `The encryption key of this database is missing. Restore its file ${keyFile(place)}, or set ` +
        `FLOWHOOK_ENCRYPTION_KEY to the key with the fingerprint ${expected}`,
    );
  }
  const sealer = createSealer(place.encryptionKey ?? ownKey(place));
  const stored = await store.instance.claim({ name: 'encryption_key', value: sealer.fingerprint });
  if (stored !== sealer.fingerprint) {
    throw new Error(
      `The encryption key does not match this database: its fingerprint is ${sealer.fingerprint}, but the database ` +
        `was encrypted with ${stored}. Set FLOWHOOK_ENCRYPTION_KEY to the previous key, or restore its file ` +
        `${keyFile(place)}`,
    );
  }
  return sealer;
}

/** The fingerprint of the key; undefined if there is no key. Does not create a key. */
export function keyFingerprint(place: KeyPlace): string | undefined {
  if (place.encryptionKey !== undefined) return createSealer(place.encryptionKey).fingerprint;
  return existsSync(keyFile(place)) ? createSealer(ownKey(place)).fingerprint : undefined;
}

/** The path of the key file that is used if no key is set. */
export function keyFile(place: Pick<KeyPlace, 'dataDirectory'>): string {
  return join(place.dataDirectory, 'encryption.key');
}

function ownKey(place: KeyPlace): Buffer {
  const path = keyFile(place);
  if (!existsSync(path)) {
    // The file is flushed, so that the key is on disk before the database commits its fingerprint. If the key is lost,
    // all secrets are lost.
    writeFileSync(path, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  }
  const key = Buffer.from(textOf(path).trim(), 'base64');
  if (key.length !== 32) throw new Error(`${path} does not contain an encryption key (32 bytes in base64)`);
  return key;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Error(
      `The encryption key cannot be read: ${(cause as Error).message}. Make the file readable for this user, or set FLOWHOOK_ENCRYPTION_KEY`,
      { cause },
    );
  }
}
