/** API keys: creation, rotation, authentication of requests, and the keys that are created at startup. */
import { hash, randomBytes } from 'node:crypto';
import { type ApiKey, isUsable, SCOPES, type Scope, type Team } from '../model/team.ts';
import type { IdempotencyKey } from '../store/operations/idempotency.ts';
import type { Store } from '../store/store.ts';
import type { LastUsed } from './usage.ts';

interface WantedKey {
  teamId: string;
  name: string;
  scopes: readonly Scope[];
  /** Epoch milliseconds; null: never. */
  expiresAt: number | null;
}

/** Creates a key of 256 random bits and stores its hash. Only this call returns the key itself. */
export async function mintKey(store: Store, input: WantedKey): Promise<{ key: string; record: ApiKey }> {
  const key = newKey();
  return { key, record: await storeKey(store, { ...input, key }) };
}

/**
 * Like `mintKey`, but repeatable with an idempotency key. `key` is undefined if an earlier call with the same
 * idempotency key created `record`.
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
 * Creates a replacement for a key of the team; the old key keeps working for `overlapMs`. Only this call returns the
 * new key itself. Returns undefined if the old key does not exist or is not valid.
 */
export async function rotateKey(
  store: Store,
  input: { teamId: string; id: string; overlapMs: number },
): Promise<{ key: string; record: ApiKey } | undefined> {
  const key = newKey();
  const record = await store.keys.rotate({ ...input, hash: hashKey(key), prefix: prefixOf(key) });
  return record && { key, record };
}

/** Stores a key whose text is given. Has no effect if the key exists, even if it was revoked. */
export function storeKey(store: Store, input: WantedKey & { key: string }): Promise<ApiKey> {
  const { key, ...rest } = input;
  return store.keys.create({ ...rest, hash: hashKey(key), prefix: prefixOf(key) });
}

function newKey(): string {
  return `fh_${randomBytes(32).toString('base64url')}`;
}

/** The first characters of a key, by which its owner recognizes the key. */
function prefixOf(key: string): string {
  return key.slice(0, 7);
}

/**
 * The SHA-256 hash of a key, in hexadecimal. A slow hash is not needed, because keys of 256 random bits cannot be
 * guessed.
 */
export function hashKey(key: string): string {
  return hash('sha256', key);
}

/** The authenticated caller of a request. */
export interface Caller {
  teamId: string;
  keyId: string;
  scopes: Scope[];
  /** The key, as it was when it was cached: its last use may be later. Null for a command that has no key. */
  key: ApiKey | null;
  /** Set for a command that opens the database directly. Such a command has no key, so its `keyId` is empty. */
  isLocal?: true;
  /**
   * Whether the credentials of a long call are still valid. A revocation by another process takes effect after about
   * 250 ms, or immediately with `asksDatabase`.
   */
  isStillGood(options?: { asksDatabase: boolean }): Promise<boolean>;
}

/**
 * Authenticates keys. A new key works immediately. A revoked key stops working when the revocation commits, or when
 * the store notices the commit of another process (about 250 ms).
 */
export class Authenticator {
  readonly #store: Store;
  readonly #cache: CredentialCache<CallerWithKey>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed records every use of a valid key */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#cache = new CredentialCache(store, ({ teamId }) => teamId);
  }

  /**
   * Returns the caller that a key belongs to; undefined if the key is unknown, revoked or expired.
   *
   * @param hash the `hashKey` of the key
   */
  async authenticate(hash: string): Promise<Caller | undefined> {
    const found = this.#usable(await this.#find(hash));
    if (found === undefined) this.#cache.disown(hash);
    return found;
  }

  /** Like `authenticate`, but only for a usable key that is cached. Returns undefined for all other keys. */
  authenticateCached(hash: string): Caller | undefined {
    return this.#usable(this.#cache.known(hash));
  }

  /** The team of a key that was authenticated before, even if the key is no longer valid. */
  teamOf(hash: string): string | undefined {
    return this.#cache.teamOf(hash);
  }

  close(): void {
    this.#cache.close();
  }

  #usable(caller: CallerWithKey | undefined): Caller | undefined {
    if (caller === undefined || !isUsable(caller.key, this.#store.now())) return undefined;
    this.#lastUsed?.note(caller.keyId);
    return caller;
  }

  #find(hash: string): Promise<CallerWithKey | undefined> {
    return this.#cache.find(hash, async () => {
      const key = await this.#store.keys.byHash({ hash });
      return key && callerOf(key, (options) => this.#isStillGood(hash, options));
    });
  }

  async #isStillGood(hash: string, options?: { asksDatabase: boolean }): Promise<boolean> {
    if (options?.asksDatabase) this.#cache.forget(hash);
    const caller = await this.#find(hash);
    if (caller !== undefined && isUsable(caller.key, this.#store.now())) return true;
    this.#cache.disown(hash);
    return false;
  }
}

/** The caller of all requests with a key. */
type CallerWithKey = Caller & { key: ApiKey };

export function callerOf(key: ApiKey, isStillGood: Caller['isStillGood']): CallerWithKey {
  return { teamId: key.teamId, keyId: key.id, scopes: key.scopes, key, isStillGood };
}

/** Stores the operator's bootstrap key with all scopes. Has no effect if the key exists, even if it was revoked. */
export async function storeBootstrapKey(
  store: Store,
  { team, key }: { team: Team; key: string },
): Promise<void> {
  await storeKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'bootstrap', key });
}

/** Creates the first key of the database, with all scopes. Returns undefined if the database already has keys. */
export async function mintFirstKey(
  store: Store,
  { team, nodeId }: { team: Team; nodeId: string },
): Promise<{ key: string; record: ApiKey } | undefined> {
  if ((await store.keys.list({ limit: 1 })).length > 0) return undefined;
  // If several nodes start on a new database, only the node with this lease creates the key. If that node dies first, a
  // later start creates the key.
  if (!(await store.instance.lease({ name: 'first_key', nodeId, forMs: 60_000 }))) return undefined;
  if ((await store.keys.list({ limit: 1 })).length > 0) return undefined;
  return mintKey(store, { teamId: team.id, scopes: SCOPES, expiresAt: null, name: 'first' });
}

const MAX_CACHED = 1_000;
/**
 * Maximum number of credentials whose teams are cached (about 2 MB). Beyond it, the credentials used longest ago are
 * dropped.
 */
const MAX_TEAMS = 10_000;

/**
 * Caches credentials until any key or session changes, in this process or another one. Unknown credentials are not
 * cached, so that new credentials work immediately.
 */
export class CredentialCache<Found> {
  readonly #found = new Map<string, Found>();
  /** The teams of credentials that were valid at their last lookup. They stay cached when other credentials change. */
  readonly #teams = new Map<string, string>();
  readonly #teamIdOf: (found: Found) => string;
  readonly #unwatch: () => void;
  #generation = 0;

  constructor(store: Store, teamIdOf: (found: Found) => string) {
    this.#teamIdOf = teamIdOf;
    this.#unwatch = store.watch((touched) => {
      if (!touched.keys) return;
      this.#generation += 1;
      this.#found.clear();
    });
  }

  /** A credential that is cached. */
  known(hash: string): Found | undefined {
    return this.#found.get(hash);
  }

  async find(hash: string, look: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const known = this.#found.get(hash);
    if (known !== undefined) return known;
    const generation = this.#generation;
    const found = await look();
    this.#noteTeam(hash, found);
    // A key that was revoked during the lookup must not be cached as valid.
    if (found !== undefined && generation === this.#generation) {
      if (this.#found.size >= MAX_CACHED) this.#found.clear();
      this.#found.set(hash, found);
    }
    return found;
  }

  /** The team of a credential that was used before, even if the credential is no longer valid. */
  teamOf(hash: string): string | undefined {
    return this.#teams.get(hash);
  }

  /**
   * Forgets the team of an invalid credential, so that requests with the credential no longer count toward that team.
   */
  disown(hash: string): void {
    this.#teams.delete(hash);
  }

  forget(hash: string): void {
    this.#found.delete(hash);
  }

  close(): void {
    this.#unwatch();
  }

  #noteTeam(hash: string, found: Found | undefined): void {
    this.#teams.delete(hash);
    if (found === undefined) return;
    const [oldest] = this.#teams.keys();
    if (oldest !== undefined && this.#teams.size >= MAX_TEAMS) this.#teams.delete(oldest);
    this.#teams.set(hash, this.#teamIdOf(found));
  }
}
