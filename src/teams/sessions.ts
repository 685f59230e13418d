/** Sessions of the dashboard: begun with a key or a link, identified by a secret of their own, ended with the key. */
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

/** Somebody who is signed in. */
export interface SignedIn extends Found {
  /** Whether the session was just begun or renewed: then the cookie must be set again. */
  isRenewed: boolean;
}

/** `secret` goes into the browser's cookie; only its hash is stored. */
export type Begun = SignedIn & { secret: string };

/**
 * Begins, finds and ends sessions, and caches them as keys are cached: a session ends as soon as its key is refused. Using
 * a session renews it, which is written every few minutes at most.
 */
export class Sessions {
  readonly #store: Store;
  readonly #cache: CredentialCache<Found>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed notes every use of a key by a session */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#cache = new CredentialCache(store, ({ session }) => session.teamId);
  }

  /** Begins a session; undefined when the key is unknown, revoked or expired. The author is for the audit. */
  async begin(key: string, author?: Author): Promise<Begun | undefined> {
    const record = await this.#store.keys.byHash({ hash: hashKey(key) });
    if (record === undefined) return undefined;
    const { sessions } = this.#storeOf(author);
    return this.#begun((hash) => sessions.begin({ keyId: record.id, hash, forMs: SESSION_MS }));
  }

  /** Begins the session of a link; undefined when the link was used or has expired, or its key is not usable. */
  redeem(token: string, author?: Author): Promise<Begun | undefined> {
    const link = hashKey(token);
    const { sessions } = this.#storeOf(author);
    return this.#begun((hash) => sessions.redeem({ link, hash, forMs: SESSION_MS }));
  }

  /** The session of this secret, renewed if due; undefined when the session or its key has ended. */
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

  /** The team of a session that was found before; says nothing of whether the session is valid now. */
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

  async #begun(begin: (hash: string) => Promise<Session | undefined>): Promise<Begun | undefined> {
    const secret = newSecret();
    const hash = hashKey(secret);
    if ((await begin(hash)) === undefined) return undefined;
    const found = await this.#look(hash);
    return found && { ...found, isRenewed: true, secret };
  }
}

/** Creates the token of a link that signs in once with a key; undefined when the key is not usable. */
export async function makeLink(
  store: Store,
  { keyId }: { keyId: string },
): Promise<{ token: string; expiresAt: number } | undefined> {
  const token = newSecret();
  const made = await store.sessions.makeLink({ keyId, hash: hashKey(token), forMs: LINK_MS });
  return made && { token, expiresAt: made.expiresAt };
}

/** The URL of a sign-in link. Browsers do not send what follows `#`, so the token reaches no log: the page reads it. */
export function linkUrl(base: string, token: string): string {
  return `${base}/ui/#/welcome/${token}`;
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
