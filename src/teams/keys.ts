/** API keys: minted once, stored as a hash, looked up on every request. */
import { hash, randomBytes } from 'node:crypto';
import { type ApiKey, isUsable, type Scope } from '../model/team.ts';
import type { Store } from '../store/store.ts';
import type { LastUsed } from './last-used.ts';
import { Remembered } from './remembered.ts';

/**
 * Makes a key of 256 random bits and stores its hash. The key itself is answered here and never again.
 */
export async function mintKey(
  store: Store,
  input: { teamId: string; name: string; scopes: readonly Scope[]; expiresAt: number | null },
): Promise<{ key: string; record: ApiKey }> {
  const key = newKey();
  return { key, record: await storeKey(store, { ...input, key }) };
}

/**
 * Makes a key that replaces one of the team, which goes on working for `overlapMs`. The new key itself is answered
 * here and never again; nothing is answered when there is no such key that can be used.
 */
export async function rotateKey(
  store: Store,
  input: { teamId: string; id: string; overlapMs: number },
): Promise<{ key: string; record: ApiKey } | undefined> {
  const key = newKey();
  const record = await store.keys.rotate({ ...input, hash: hashKey(key), prefix: prefixOf(key) });
  return record && { key, record };
}

/** Stores a key that somebody else chose; harmless when it is there already, also when it was revoked. */
export function storeKey(
  store: Store,
  input: { teamId: string; name: string; scopes: readonly Scope[]; expiresAt: number | null; key: string },
): Promise<ApiKey> {
  const { key, ...rest } = input;
  return store.keys.create({ ...rest, hash: hashKey(key), prefix: prefixOf(key) });
}

function newKey(): string {
  return `fh_${randomBytes(32).toString('base64url')}`;
}

/** What a key is recognised by. */
function prefixOf(key: string): string {
  return key.slice(0, 7);
}

/** SHA-256 as hex. Enough for keys of high entropy: there is nothing to guess that a slow hash would protect. */
export function hashKey(key: string): string {
  return hash('sha256', key);
}

/** Whoever a request speaks for. */
export interface Caller {
  teamId: string;
  keyId: string;
  scopes: Scope[];
  /** Whether what was shown is good until now: for answers that go on for long. */
  isStillGood(): Promise<boolean>;
}

/**
 * Turns keys into callers. A key that is minted works at once; a revoked one stops with the commit that revokes it, or
 * as soon as the store notices a foreign write (some 250 ms).
 */
export class Authenticator {
  readonly #store: Store;
  readonly #remembered: Remembered<ApiKey>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed hears of every key that was good */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#remembered = new Remembered(store);
  }

  /** The caller that a key speaks for, or nothing for a key that is unknown, revoked or expired. */
  async authenticate(key: string): Promise<Caller | undefined> {
    const hash = hashKey(key);
    const record = await this.#usable(hash);
    if (record !== undefined) this.#lastUsed?.note(record.id);
    return record && callerOf(record, async () => (await this.#usable(hash)) !== undefined);
  }

  close(): void {
    this.#remembered.close();
  }

  async #usable(hash: string): Promise<ApiKey | undefined> {
    const record = await this.#remembered.find(hash, () => this.#store.keys.byHash({ hash }));
    return record !== undefined && isUsable(record, this.#store.now()) ? record : undefined;
  }
}

export function callerOf({ teamId, id, scopes }: ApiKey, isStillGood: Caller['isStillGood']): Caller {
  return { teamId, keyId: id, scopes, isStillGood };
}
