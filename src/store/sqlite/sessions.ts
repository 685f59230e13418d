/** Dashboard sessions and the links that begin one: never their secrets, only the hashes. */
import { MAX_SESSIONS_OF_KEY, type Session } from '../../model/session.ts';
import { type ApiKey, isUsable } from '../../model/team.ts';
import type { SessionOperations } from '../session-operations.ts';
import { byId } from './keys.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof SessionOperations> = Parameters<SessionOperations[Name]>[0];

const SESSION = `select team_id as teamId, key_id as keyId, created_at as createdAt, expires_at as expiresAt
  from session`;

export function begin(tx: Tx, { keyId, hash, forMs }: Input<'begin'>): Session | undefined {
  const key = usable(tx, keyId);
  if (key === undefined) return undefined;
  insert(tx, 'session', { key, hash, forMs });
  const ended = tx.db.run(
    `delete from session where hash in
       (select hash from session where key_id = ? order by expires_at desc, created_at desc limit -1 offset ?)`,
    keyId,
    MAX_SESSIONS_OF_KEY,
  );
  if (ended > 0) tx.touched.keys = true;
  return { teamId: key.teamId, keyId, createdAt: tx.now, expiresAt: tx.now + forMs };
}

export function makeLink(
  tx: Tx,
  { keyId, hash, forMs }: Input<'makeLink'>,
): { teamId: string; expiresAt: number } | undefined {
  const key = usable(tx, keyId);
  if (key === undefined) return undefined;
  insert(tx, 'sign_in_link', { key, hash, forMs });
  return { teamId: key.teamId, expiresAt: tx.now + forMs };
}

export function redeem(tx: Tx, { link, hash, forMs }: Input<'redeem'>): Session | undefined {
  const row = tx.db.get<{ keyId: string; expiresAt: number }>(
    'delete from sign_in_link where hash = ? returning key_id as keyId, expires_at as expiresAt',
    link,
  );
  if (row === undefined || row.expiresAt <= tx.now) return undefined;
  return begin(tx, { keyId: row.keyId, hash, forMs });
}

export function byHash(view: View, { hash }: Input<'byHash'>): { session: Session; key: ApiKey } | undefined {
  const session = view.db.get<Session>(`${SESSION} where hash = ? and expires_at > ?`, hash, view.now);
  const key = session && byId(view, session.keyId);
  return session && key && { session: { ...session }, key };
}

export function renew(tx: Tx, { hash, forMs }: Input<'renew'>): Session | undefined {
  tx.db.run(
    'update session set expires_at = max(expires_at, ?) where hash = ? and expires_at > ?',
    tx.now + forMs,
    hash,
    tx.now,
  );
  const session = tx.db.get<Session>(`${SESSION} where hash = ? and expires_at > ?`, hash, tx.now);
  return session && { ...session };
}

export function end(tx: Tx, { hash }: Input<'end'>): void {
  if (tx.db.run('delete from session where hash = ?', hash) > 0) tx.touched.keys = true;
}

export function prune(tx: Tx, { limit }: Input<'prune'>): { done: boolean } {
  const counts = ['session', 'sign_in_link'].map((table) =>
    tx.db.run(
      `delete from ${table} where hash in (select hash from ${table} where expires_at <= ? limit ?)`,
      tx.now,
      limit,
    ),
  );
  return { done: counts.every((count) => count < limit) };
}

function usable(tx: Tx, keyId: string): ApiKey | undefined {
  const key = byId(tx, keyId);
  return key !== undefined && isUsable(key, tx.now) ? key : undefined;
}

function insert(
  tx: Tx,
  table: 'session' | 'sign_in_link',
  { key, hash, forMs }: { key: ApiKey; hash: string; forMs: number },
): void {
  tx.db.run(
    `insert into ${table} (hash, team_id, key_id, created_at, expires_at) values (?, ?, ?, ?, ?)`,
    hash,
    key.teamId,
    key.id,
    tx.now,
    tx.now + forMs,
  );
}
