/** API keys: created once, stored as a hash, authenticated on every request. */
import { hash, randomBytes } from 'node:crypto';
import { type ApiKey, isUsable, type Scope } from '../model/team.ts';
import type { IdempotencyKey } from '../store/idempotent-call.ts';
import type { Store } from '../store/store.ts';
import { CredentialCache } from './credential-cache.ts';
import type { LastUsed } from './last-used.ts';

interface WantedKey {
  teamId: string;
  name: string;
  scopes: readonly Scope[];
  /** Epoch milliseconds; null: never. */
  expiresAt: number | null;
}

/**
 * Creates a key of 256 random bits and stores its hash. The key itself is returned here and never again.
 */
export async function mintKey(store: Store, input: WantedKey): Promise<{ key: string; record: ApiKey }> {
  const key = newKey();
  return { key, record: await storeKey(store, { ...input, key }) };
}

/**
 * The same with an idempotency key. `key` is undefined when a call with it has made the key of `record` before.
 *
 * @throws Problem `idempotency_key_reused`
 */
export async function mintKeyOnce(
  store: Store,
  input: WantedKey & { idempotencyKey: IdempotencyKey },
): Promise<{ key: string | undefined; record: ApiKey }> {
  const key = newKey();
  const record = await store.keys.create({ ...input, hash: hashKey(key), prefix: prefixOf(key) });
  return { key: record.hash === hashKey(key) ? key : undefined, record };
}

/**
 * Creates a key that replaces one of the team, which continues to work for `overlapMs`. The new key itself is returned
 * here and never again; undefined when there is no such usable key.
 */
export async function rotateKey(
  store: Store,
  input: { teamId: string; id: string; overlapMs: number },
): Promise<{ key: string; record: ApiKey } | undefined> {
  const key = newKey();
  const record = await store.keys.rotate({ ...input, hash: hashKey(key), prefix: prefixOf(key) });
  return record && { key, record };
}

/** Stores a given key. Has no effect when it exists already, even if it was revoked. */
export function storeKey(store: Store, input: WantedKey & { key: string }): Promise<ApiKey> {
  const { key, ...rest } = input;
  return store.keys.create({ ...rest, hash: hashKey(key), prefix: prefixOf(key) });
}

function newKey(): string {
  return `fh_${randomBytes(32).toString('base64url')}`;
}

/** The start of a key, by which its owner recognises it. */
function prefixOf(key: string): string {
  return key.slice(0, 7);
}

/** SHA-256 in hex. Keys have 256 random bits, so a slow hash against guessing is not needed. */
export function hashKey(key: string): string {
  return hash('sha256', key);
}

/** The authenticated caller of a request. */
export interface Caller {
  teamId: string;
  keyId: string;
  scopes: Scope[];
  /**
   * Whether the credentials are still valid, for calls that last long. A revocation by another process is known after
   * some 250 ms, and at once with `asksDatabase`.
   */
  isStillGood(options?: { asksDatabase: boolean }): Promise<boolean>;
}

/**
 * Authenticates keys. A new key works at once; a revoked one stops working with the commit of the revocation, or as soon
 * as the store notices the write of another process (some 250 ms).
 */
export class Authenticator {
  readonly #store: Store;
  readonly #cache: CredentialCache<ApiKey>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed notes every use of a valid key */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#cache = new CredentialCache(store, ({ teamId }) => teamId);
  }

  /** The caller that a key belongs to; undefined when the key is unknown, revoked or expired. */
  async authenticate(key: string): Promise<Caller | undefined> {
    const hash = hashKey(key);
    const record = await this.#usable(hash);
    if (record !== undefined) this.#lastUsed?.note(record.id);
    return (
      record &&
      callerOf(record, async (options) => {
        if (options?.asksDatabase) this.#cache.forget(hash);
        return (await this.#usable(hash)) !== undefined;
      })
    );
  }

  /** The team of a key that was authenticated before; says nothing of whether the key is valid now. */
  teamOf(key: string): string | undefined {
    return this.#cache.teamOf(hashKey(key));
  }

  close(): void {
    this.#cache.close();
  }

  async #usable(hash: string): Promise<ApiKey | undefined> {
    const record = await this.#cache.find(hash, () => this.#store.keys.byHash({ hash }));
    if (record !== undefined && isUsable(record, this.#store.now())) return record;
    this.#cache.disown(hash);
    return undefined;
  }
}

export function callerOf({ teamId, id, scopes }: ApiKey, isStillGood: Caller['isStillGood']): Caller {
  return { teamId, keyId: id, scopes, isStillGood };
}
