/** Operations on dashboard sessions and sign-in links: part of the Store; `store.ts` says what all have in common. */
import type { ApiKey, Session } from '../model/team.ts';

/** `hash` and `link` are the SHA-256, in hex, of the secret that the browser presents. */
export interface SessionOperations {
  /** Begins a session of a key; undefined if that is unusable. Ends the key's oldest beyond `MAX_SESSIONS_OF_KEY`. */
  begin(input: { keyId: string; hash: string; forMs: number }): Promise<Session | undefined>;
  /** Stores a link that can begin one session of a key; undefined if the key is unusable. */
  makeLink(input: {
    keyId: string;
    hash: string;
    forMs: number;
  }): Promise<{ teamId: string; expiresAt: number } | undefined>;
  /** Begins a session by a link, and deletes the link; undefined if it is unknown, expired, or its key unusable. */
  redeem(input: { link: string; hash: string; forMs: number }): Promise<Session | undefined>;
  /** A session that has not expired, with its key, which may be revoked or expired. */
  byHash(input: { hash: string }): Promise<{ session: Session; key: ApiKey } | undefined>;
  /** Extends a session that has not expired to `forMs` from now, unless it lasts longer anyway. */
  renew(input: { hash: string; forMs: number }): Promise<Session | undefined>;
  /** Ends a session; harmless if there is none. */
  end(input: { hash: string }): Promise<void>;
  /** Deletes up to `limit` expired sessions, and as many expired links, per call; call until `done`. */
  prune(input: { limit: number }): Promise<{ done: boolean }>;
}
