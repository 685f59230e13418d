/** What can happen to sessions of the dashboard, and to the links that begin one. */
import type { Session } from '../model/session.ts';
import type { ApiKey } from '../model/team.ts';

/** Whatever somebody shows is given as its SHA-256 in hex. */
export interface SessionOperations {
  /** Begins a session of a key; nothing unless it is one that can be used. Of very many of a key the oldest end. */
  begin(input: { keyId: string; hash: string; forMs: number }): Promise<Session | undefined>;
  /** Makes a link that begins one session of a key, and answers when it ends; nothing unless the key can be used. */
  makeLink(input: {
    keyId: string;
    hash: string;
    forMs: number;
  }): Promise<{ teamId: string; expiresAt: number } | undefined>;
  /** Begins the session of a link, which is gone then; nothing unless there is one whose key can be used. */
  redeem(input: { link: string; hash: string; forMs: number }): Promise<Session | undefined>;
  /** A session that has not expired, with its key, which may have been revoked or have expired. */
  byHash(input: { hash: string }): Promise<{ session: Session; key: ApiKey } | undefined>;
  /** Lets a session that has not expired end so long from now, unless it ends later anyway. */
  renew(input: { hash: string; forMs: number }): Promise<Session | undefined>;
  /** Ends a session; harmless when there is none. */
  end(input: { hash: string }): Promise<void>;
  /** Deletes up to `limit` sessions, and as many links, that have expired. To be called until done. */
  prune(input: { limit: number }): Promise<{ done: boolean }>;
}
