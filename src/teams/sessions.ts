/** Sessions of the dashboard: each starts with a key or a sign-in link, has its own secret, and ends with the key. */
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
  /** Whether the session was just started or renewed: then the cookie must be set again. */
  isRenewed: boolean;
}

/** `secret` is stored in the browser's cookie; the database contains only its hash. */
export type Started = SignedIn & { secret: string };

/**
 * Starts, finds and ends sessions, and caches them like keys: a session ends as soon as its key is invalid. Using a
 * session renews it; the renewal is written at most every few minutes.
 */
export class Sessions {
  readonly #store: Store;
  readonly #cache: CredentialCache<Found>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed records every use of a key by a session */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#cache = new CredentialCache(store, ({ session }) => session.teamId);
  }

  /** Starts a session; undefined if the key is unknown, revoked or expired. The author is for the audit log. */
  async begin(key: string, author?: Author): Promise<Started | undefined> {
    const record = await this.#store.keys.byHash({ hash: hashKey(key) });
    if (record === undefined) return undefined;
    const { sessions } = this.#storeOf(author);
    return this.#start((hash) => sessions.begin({ keyId: record.id, hash, forMs: SESSION_MS }));
  }

  /** Starts the session of a sign-in link; undefined if the link was used or has expired, or its key is not valid. */
  redeem(token: string, author?: Author): Promise<Started | undefined> {
    const link = hashKey(token);
    const { sessions } = this.#storeOf(author);
    return this.#start((hash) => sessions.redeem({ link, hash, forMs: SESSION_MS }));
  }

  /** The session with this secret, renewed if due; undefined if the session or its key has ended. */
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
    // Another node may have renewed the cached session.
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

/** The URL of a sign-in link. No log contains the token: browsers do not send the part after `#`. */
export function linkUrl(base: string, token: string): string {
  return `${base}/ui/#/welcome/${token}`;
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
