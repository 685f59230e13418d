/**
 * Sessions of the dashboard. Each session starts with a key or a sign-in link, has its own secret, and ends with its
 * key.
 */
import { randomBytes } from 'node:crypto';
import type { Author } from '../model/audit.ts';
import { type ApiKey, isToRenew, isUsable, LINK_MS, SESSION_MS, type Session } from '../model/team.ts';
import { authoredBy } from '../store/audited.ts';
import type { Store } from '../store/store.ts';
import { CredentialCache, hashKey } from './keys.ts';
import type { LastUsed } from './usage.ts';

interface Found {
  session: Session;
  key: ApiKey;
}

/** A signed-in user. */
export interface SignedIn extends Found {
  /** Whether the session was just started or renewed. If so, the response must set the cookie again. */
  isRenewed: boolean;
}

/** `secret` is stored in the browser's cookie; the database contains only its hash. */
export type Started = SignedIn & { secret: string };

/**
 * Starts, finds and ends sessions, and caches them like keys. A session ends as soon as its key is invalid. Using a
 * session renews it; a renewal is written at most once every few minutes.
 */
export class Sessions {
  readonly #store: Store;
  readonly #cache: CredentialCache<Found>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed records every use of a key through a session */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#cache = new CredentialCache(store, ({ session }) => session.teamId);
  }

  /** Starts a session. Returns undefined if the key is unknown, revoked or expired. `author` is for the audit log. */
  async begin(key: string, author?: Author): Promise<Started | undefined> {
    const record = await this.#store.keys.byHash({ hash: hashKey(key) });
    if (record === undefined) return undefined;
    const { sessions } = this.#storeOf(author);
    return this.#start((hash) => sessions.begin({ keyId: record.id, hash, forMs: SESSION_MS }));
  }

  /**
   * Starts the session of a sign-in link. Returns undefined if the link was used or has expired, or if its key is not
   * valid.
   */
  redeem(token: string, author?: Author): Promise<Started | undefined> {
    const link = hashKey(token);
    const { sessions } = this.#storeOf(author);
    return this.#start((hash) => sessions.redeem({ link, hash, forMs: SESSION_MS }));
  }

  /**
   * Returns the session with this secret, and renews it if a renewal is due. Returns undefined if the session or its
   * key has ended.
   */
  async find(secret: string): Promise<SignedIn | undefined> {
    const hash = hashKey(secret);
    const found = await this.#look(hash);
    if (found === undefined) return undefined;
    this.#lastUsed?.note(found.key.id);
    if (!isToRenew(found.session, this.#store.now())) return { ...found, isRenewed: false };
    const session = await this.#store.sessions.renew({ hash, forMs: SESSION_MS });
    this.#cache.forget(hash);
    return session && { session, key: found.key, isRenewed: true };
  }

  /** Whether the session is still valid. Does not renew it. */
  async isAlive(secret: string, options?: { asksDatabase: boolean }): Promise<boolean> {
    const hash = hashKey(secret);
    if (options?.asksDatabase) this.#cache.forget(hash);
    return (await this.#look(hash)) !== undefined;
  }

  /** The team of a session that was found before, even if the session is no longer valid. */
  teamOf(secret: string): string | undefined {
    return this.#cache.teamOf(hashKey(secret));
  }

  async end(secret: string): Promise<void> {
    await this.#store.sessions.end({ hash: hashKey(secret) });
  }

  close(): void {
    this.#cache.close();
  }

  #storeOf(author: Author | undefined): Store {
    return author === undefined ? this.#store : authoredBy(this.#store, author);
  }

  async #look(hash: string): Promise<Found | undefined> {
    const find = () => this.#cache.find(hash, () => this.#store.sessions.byHash({ hash }));
    const found = await find();
    if (found === undefined || this.#isAlive(found)) return found;
    // The cached session has expired, but another node may have renewed it in the database.
    this.#cache.forget(hash);
    const again = await find();
    if (again !== undefined && this.#isAlive(again)) return again;
    this.#cache.disown(hash);
    return undefined;
  }

  #isAlive({ session, key }: Found): boolean {
    const now = this.#store.now();
    return session.expiresAt > now && isUsable(key, now);
  }

  async #start(begin: (hash: string) => Promise<Session | undefined>): Promise<Started | undefined> {
    const secret = newSecret();
    const hash = hashKey(secret);
    if ((await begin(hash)) === undefined) return undefined;
    const found = await this.#look(hash);
    return found && { ...found, isRenewed: true, secret };
  }
}

/** Creates the token of a sign-in link that works once; undefined if the key is not valid. */
export async function makeLink(
  store: Store,
  { keyId }: { keyId: string },
): Promise<{ token: string; expiresAt: number } | undefined> {
  const token = newSecret();
  const made = await store.sessions.makeLink({ keyId, hash: hashKey(token), forMs: LINK_MS });
  return made && { token, expiresAt: made.expiresAt };
}

/**
 * The URL of a sign-in link. Browsers do not send the part of a URL after `#`, so the token does not appear in any log.
 */
export function linkUrl(base: string, token: string): string {
  return `${base}/ui/#/welcome/${token}`;
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
