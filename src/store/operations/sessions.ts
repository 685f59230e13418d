/**
 * Sessions of the dashboard, and sign-in links. `hash` and `link` are hexadecimal SHA-256 digests of the secret that
 * the browser sends. The secret itself is never stored.
 */

import { type ApiKey, isUsable, MAX_SESSIONS_OF_KEY, type Session } from '../../model/team.ts';
import { deletion, Part } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { byId, touchKeys } from './keys.ts';

const COLUMNS = new Part(
  'team_id as "teamId", key_id as "keyId", created_at as "createdAt", expires_at as "expiresAt"',
);

/**
 * Begins a session of a key, or returns undefined if the key is unusable. If the key then has more than
 * `MAX_SESSIONS_OF_KEY` sessions, the oldest ones end.
 */
export async function begin(
  tx: Tx,
  { keyId, hash, forMs }: { keyId: string; hash: string; forMs: number },
): Promise<Session | undefined> {
  const key = await usable(tx, keyId);
  if (key === undefined) return undefined;
  await insert(tx, 'session', { key, hash, forMs });
  const ended = await tx.db.run`
    delete from session where hash in
    (select hash from session where key_id = ${keyId} order by expires_at desc, created_at desc
    limit ${Number.MAX_SAFE_INTEGER} offset ${MAX_SESSIONS_OF_KEY})`;
  if (ended > 0) await touchKeys(tx);
  return { teamId: key.teamId, keyId, createdAt: tx.now, expiresAt: tx.now + forMs };
}

/** Stores a sign-in link that can begin one session of a key. Returns undefined if the key is unusable. */
export async function makeLink(
  tx: Tx,
  { keyId, hash, forMs }: { keyId: string; hash: string; forMs: number },
): Promise<{ teamId: string; expiresAt: number } | undefined> {
  const key = await usable(tx, keyId);
  if (key === undefined) return undefined;
  await insert(tx, 'sign_in_link', { key, hash, forMs });
  return { teamId: key.teamId, expiresAt: tx.now + forMs };
}

/**
 * Begins a session by a sign-in link, and deletes the link. Returns undefined if the link is unknown or expired, or if
 * its key is unusable.
 *
 * If two calls use the same link simultaneously, the second waits, and then finds that the link has been used.
 */
export async function redeem(
  tx: Tx,
  { link, hash, forMs }: { link: string; hash: string; forMs: number },
): Promise<Session | undefined> {
  const row = await tx.db.get<{ keyId: string; expiresAt: number }>`
    delete from sign_in_link where hash = ${link} returning key_id as "keyId", expires_at as "expiresAt"`;
  if (row === undefined || row.expiresAt <= tx.now) return undefined;
  return begin(tx, { keyId: row.keyId, hash, forMs });
}

/** Returns an unexpired session with its key. The key may be revoked or expired. */
export async function byHash(
  view: View,
  { hash }: { hash: string },
): Promise<{ session: Session; key: ApiKey } | undefined> {
  const session = await view.db.get<Session>`
    select ${COLUMNS} from session where hash = ${hash} and expires_at > ${view.now}`;
  const key = session && (await byId(view, session.keyId));
  return session && key && { session, key };
}

/** Extends an unexpired session to `forMs` from now, unless the session already lasts longer. */
export function renew(
  tx: Tx,
  { hash, forMs }: { hash: string; forMs: number },
): Promise<Session | undefined> {
  return tx.db.get<Session>`
    update session set expires_at = greatest(expires_at, ${tx.now + forMs}) where hash = ${hash}
      and expires_at > ${tx.now}
    returning ${COLUMNS}`;
}

/** Ends a session. Does nothing if the session does not exist. */
export async function end(tx: Tx, { hash }: { hash: string }): Promise<void> {
  const ended = await tx.db.run`delete from session where hash = ${hash}`;
  if (ended > 0) await touchKeys(tx);
}

const EXPIRED = ['session', 'sign_in_link'].map((table) =>
  deletion({ table, key: 'hash', first: 'where expires_at <= $1 limit $2' }),
);

/** Deletes up to `limit` expired sessions and up to `limit` expired links per call; call until `done`. */
export async function prune(tx: Tx, { limit }: { limit: number }): Promise<{ done: boolean }> {
  const counts = await Promise.all(EXPIRED.map((sql) => tx.db.run(sql, tx.now, limit)));
  return { done: counts.every((count) => count < limit) };
}

/**
 * Returns a usable key, locked until the commit. The lock keeps the key from being deleted before a row that refers to
 * it is inserted.
 */
async function usable(tx: Tx, keyId: string): Promise<ApiKey | undefined> {
  await tx.db.lock`select 1 from api_key where id = ${keyId} for key share`;
  const key = await byId(tx, keyId);
  return key !== undefined && isUsable(key, tx.now) ? key : undefined;
}

async function insert(
  tx: Tx,
  table: 'session' | 'sign_in_link',
  { key, hash, forMs }: { key: ApiKey; hash: string; forMs: number },
): Promise<void> {
  await tx.db.run(
    `insert into ${table} (hash, team_id, key_id, created_at, expires_at) values ($1, $2, $3, $4, $5)`,
    hash,
    key.teamId,
    key.id,
    tx.now,
    tx.now + forMs,
  );
}
