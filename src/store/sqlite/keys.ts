/** API keys: never the key itself, only its hash. */
import { OVERLAPPING } from '../../model/quota.ts';
import { type ApiKey, isUsable } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import type { KeyOperations } from '../store.ts';
import { once } from './idempotency.ts';
import { requireRoom } from './quotas.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof KeyOperations> = Parameters<KeyOperations[Name]>[0];

interface KeyRow {
  id: string;
  team_id: string;
  name: string;
  hash: string;
  prefix: string;
  scopes: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
  watched_from: number | null;
}

export function create(tx: Tx, input: Input<'create'>): ApiKey {
  const { teamId, idempotencyKey = null } = input;
  const call = { teamId, operation: 'keys.create', target: '', idempotencyKey } as const;
  const id = once(tx, call, () => {
    if (byHash(tx, input) === undefined) requireRoom(tx, teamId, 'keys');
    return insert(tx, input).id;
  });
  return byId(tx, id as string) as ApiKey;
}

function insert(tx: Tx, input: Input<'create'>): ApiKey {
  const made = tx.db.run(
    `insert into api_key (id, team_id, name, hash, prefix, scopes, created_at, expires_at)
     values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (hash) do nothing`,
    newId('key', tx.now),
    input.teamId,
    input.name,
    input.hash,
    input.prefix,
    JSON.stringify(input.scopes),
    tx.now,
    input.expiresAt,
  );
  if (made === 0) tx.repeated = true;
  tx.touched.keys = true;
  return byHash(tx, { hash: input.hash }) as ApiKey;
}

export function byHash(view: View, { hash }: Input<'byHash'>): ApiKey | undefined {
  const row = view.db.get<KeyRow>('select * from api_key where hash = ?', hash);
  return row && toKey(row);
}

/** Of any team. */
export function byId(view: View, id: string): ApiKey | undefined {
  const row = view.db.get<KeyRow>('select * from api_key where id = ?', id);
  return row && toKey(row);
}

export function get(view: View, { teamId, id }: Input<'get'>): ApiKey | undefined {
  const row = view.db.get<KeyRow>('select * from api_key where team_id = ? and id = ?', teamId, id);
  return row && toKey(row);
}

export function list(view: View, { teamId, after = '', limit }: Input<'list'>): ApiKey[] {
  const rows =
    teamId === undefined
      ? view.db.all<KeyRow>('select * from api_key where id > ? order by id limit ?', after, limit)
      : view.db.all<KeyRow>(
          'select * from api_key indexed by api_key_team where team_id = ? and id > ? order by id limit ?',
          teamId,
          after,
          limit,
        );
  return rows.map(toKey);
}

export function revoke(tx: Tx, { id, teamId }: Input<'revoke'>): ApiKey | undefined {
  const of = [id, teamId ?? null];
  const row = tx.db.get<KeyRow>(
    `update api_key set revoked_at = ?
     where id = ? and team_id = coalesce(?, team_id) and revoked_at is null returning *`,
    tx.now,
    ...of,
  );
  tx.touched.keys = true;
  if (row !== undefined) return toKey(row);
  tx.repeated = true;
  const before = tx.db.get<KeyRow>(
    'select * from api_key where id = ? and team_id = coalesce(?, team_id)',
    ...of,
  );
  return before && toKey(before);
}

export function rotate(tx: Tx, { teamId, id, hash, prefix, overlapMs }: Input<'rotate'>): ApiKey | undefined {
  const row = tx.db.get<KeyRow>('select * from api_key where team_id = ? and id = ?', teamId, id);
  const old = row && toKey(row);
  if (old === undefined || !isUsable(old, tx.now)) return undefined;
  if (overlapMs > 0) requireRoom(tx, teamId, 'keys', OVERLAPPING);
  const { name, scopes, expiresAt } = old;
  const key = insert(tx, { teamId, name, scopes, expiresAt, hash, prefix });
  if (overlapMs === 0) revoke(tx, { id });
  else {
    const until = tx.now + overlapMs;
    tx.db.run(
      'update api_key set expires_at = min(coalesce(expires_at, ?), ?) where id = ?',
      until,
      until,
      id,
    );
  }
  return key;
}

export function used(tx: Tx, { keys }: Input<'used'>): void {
  for (const { id, at } of keys) {
    tx.db.run('update api_key set last_used_at = max(coalesce(last_used_at, 0), ?) where id = ?', at, id);
  }
}

function toKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    teamId: row.team_id,
    name: row.name,
    hash: row.hash,
    prefix: row.prefix,
    scopes: JSON.parse(row.scopes),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
    watchedFrom: row.watched_from ?? row.created_at,
  };
}
