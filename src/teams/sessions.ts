/** Sessions of the dashboard: begun with a key or a link, known by a secret of their own, ended with the key. */
import { randomBytes } from 'node:crypto';
import type { Author } from '../model/audit.ts';
import { isToRenew, LINK_MS, SESSION_MS, type Session } from '../model/session.ts';
import { type ApiKey, isUsable } from '../model/team.ts';
import { authoredBy } from '../store/audited.ts';
import type { Store } from '../store/store.ts';
import { hashKey } from './keys.ts';
import type { LastUsed } from './last-used.ts';
import { Remembered } from './remembered.ts';

interface Found {
  session: Session;
  key: ApiKey;
}

/** Somebody who is signed in. */
export interface SignedIn extends Found {
  /** Whether the session was just begun or prolonged: then the browser is to be told. */
  isRenewed: boolean;
}

/** `secret` is what the browser shows from now on; nobody else knows it. */
export type Begun = SignedIn & { secret: string };

/**
 * Finds the sessions that requests show, and remembers them as keys are remembered: one whose key is revoked is over
 * as soon as the key is refused. A session that is used goes on; that is written every few minutes at most.
 */
export class Sessions {
  readonly #store: Store;
  readonly #remembered: Remembered<Found>;
  readonly #lastUsed: LastUsed | undefined;

  /** @param lastUsed hears of the key of everybody who is found */
  constructor(store: Store, lastUsed?: LastUsed) {
    this.#store = store;
    this.#lastUsed = lastUsed;
    this.#remembered = new Remembered(store);
  }

  /** Begins a session; nothing for a key that is unknown, revoked or expired. The author is for the audit. */
  async begin(key: string, author?: Author): Promise<Begun | undefined> {
    const record = await this.#store.keys.byHash({ hash: hashKey(key) });
    if (record === undefined) return undefined;
    const { sessions } = this.#storeOf(author);
    return this.#begun((hash) => sessions.begin({ keyId: record.id, hash, forMs: SESSION_MS }));
  }

  /** Begins the session that a link is for; nothing when it was used, has expired, or its key cannot be used. */
  redeem(token: string, author?: Author): Promise<Begun | undefined> {
    const link = hashKey(token);
    const { sessions } = this.#storeOf(author);
    return this.#begun((hash) => sessions.redeem({ link, hash, forMs: SESSION_MS }));
  }

  /** Whoever is signed in by this secret, and nothing when the session or its key has ended. */
  async find(secret: string): Promise<SignedIn | undefined> {
    const hash = hashKey(secret);
    const found = await this.#look(hash);
    if (found === undefined) return undefined;
    this.#lastUsed?.note(found.key.id);
    if (!isToRenew(found.session, this.#store.now())) return { ...found, isRenewed: false };
    const session = await this.#store.sessions.renew({ hash, forMs: SESSION_MS });
    this.#remembered.forget(hash);
    return session && { session, key: found.key, isRenewed: true };
  }

  /** Whether somebody still is signed in by it. To ask this does not prolong it. */
  async isAlive(secret: string): Promise<boolean> {
    return (await this.#look(hashKey(secret))) !== undefined;
  }

  async end(secret: string): Promise<void> {
    await this.#store.sessions.end({ hash: hashKey(secret) });
  }

  close(): void {
    this.#remembered.close();
  }

  #storeOf(author: Author | undefined): Store {
    return author === undefined ? this.#store : authoredBy(this.#store, author);
  }

  async #look(hash: string): Promise<Found | undefined> {
    const find = () => this.#remembered.find(hash, () => this.#store.sessions.byHash({ hash }));
    const found = await find();
    if (found === undefined || this.#isAlive(found)) return found;
    // Another node may have prolonged what is remembered here.
    this.#remembered.forget(hash);
    const again = await find();
    return again !== undefined && this.#isAlive(again) ? again : undefined;
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

/** Makes a link's token, which signs in once as a key of the store; nothing unless that can be used. */
export async function makeLink(
  store: Store,
  { keyId }: { keyId: string },
): Promise<{ token: string; expiresAt: number } | undefined> {
  const token = newSecret();
  const made = await store.sessions.makeLink({ keyId, hash: hashKey(token), forMs: LINK_MS });
  return made && { token, expiresAt: made.expiresAt };
}

function newSecret(): string {
  return randomBytes(32).toString('base64url');
}
