/** API keys. Only hashes of the keys are stored. */

import { OVERLAPPING } from '../../model/quota.ts';
import { type ApiKey, isUsable, type Scope } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import type { Page } from '../page.ts';
import type { InTeam } from '../rows.ts';
import { Part } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { type IdempotencyKey, once } from './idempotency.ts';
import { requireRoom } from './quotas.ts';

interface KeyRow extends Omit<ApiKey, 'scopes'> {
  scopes: string;
}

const COLUMNS = new Part(`id, team_id as "teamId", name, hash, prefix, scopes, created_at as "createdAt",
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt",
  coalesce(watched_from, created_at) as "watchedFrom"`);

/**
 * Stores a key. If the hash is already stored, nothing changes, and the stored key is returned. Repeating an
 * idempotency key within 24 h returns the key that the first call created.
 *
 * @throws Problem `quota_reached`
 */
export async function create(
  tx: Tx,
  input: {
    teamId: string;
    name: string;
    hash: string;
    prefix: string;
    scopes: readonly Scope[];
    expiresAt: number | null;
    idempotencyKey?: IdempotencyKey;
  },
): Promise<ApiKey> {
  const { teamId, idempotencyKey = null } = input;
  const call = { teamId, operation: 'keys.create', target: '', idempotencyKey } as const;
  const id = await once(tx, call, async () => {
    if ((await byHash(tx, input)) === undefined) await requireRoom(tx, teamId, 'keys');
    return (await insert(tx, input)).id;
  });
  return (await byId(tx, id as string)) as ApiKey;
}

async function insert(tx: Tx, input: Parameters<typeof create>[1]): Promise<ApiKey> {
  const made = await tx.db.run`
    insert into api_key (id, team_id, name, hash, prefix, scopes, created_at, expires_at)
    values (${newId('key', tx.now)}, ${input.teamId}, ${input.name},
      ${input.hash}, ${input.prefix}, ${JSON.stringify(input.scopes)}, ${tx.now}, ${input.expiresAt})
    on conflict (hash) do nothing`;
  if (made === 0) tx.repeated = true;
  await touchKeys(tx);
  return (await byHash(tx, { hash: input.hash })) as ApiKey;
}

/** The key with this SHA-256, even if it is revoked or expired. */
export async function byHash(view: View, { hash }: { hash: string }): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`select ${COLUMNS} from api_key where hash = ${hash}`;
  return row && toKey(row);
}

/** A key of any team. */
export async function byId(view: View, id: string): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`select ${COLUMNS} from api_key where id = ${id}`;
  return row && toKey(row);
}

/** A key of the team, even if it is revoked or expired. */
export async function get(view: View, { teamId, id }: InTeam): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`
    select ${COLUMNS} from api_key where team_id = ${teamId} and id = ${id}`;
  return row && toKey(row);
}

/** Returns a page of the keys of one team, or of all teams, ordered by id. Revoked keys are included. */
export async function list(
  view: View,
  { teamId, after = '', limit }: { teamId?: string } & Page,
): Promise<ApiKey[]> {
  const ofTeam = teamId === undefined ? '' : '/* use api_key_team */';
  const rows = await view.db.all<KeyRow>(
    `select ${COLUMNS} from api_key ${ofTeam}
     where id > $1 ${teamId === undefined ? '' : 'and team_id = $3'} order by id limit $2`,
    after,
    limit,
    ...(teamId === undefined ? [] : [teamId]),
  );
  return rows.map(toKey);
}

/**
 * Revokes a key permanently and returns it, or returns undefined if the key does not exist or belongs to another team.
 * Revoking a key twice is harmless.
 */
export async function revoke(
  tx: Tx,
  { id, teamId }: { id: string; teamId?: string },
): Promise<ApiKey | undefined> {
  const team = teamId ?? null;
  const row = await tx.db.get<KeyRow>`
    update api_key set revoked_at = ${tx.now}
    where id = ${id} and team_id = coalesce(${team}, team_id) and revoked_at is null returning ${COLUMNS}`;
  await touchKeys(tx);
  if (row !== undefined) return toKey(row);
  tx.repeated = true;
  const before = await tx.db.get<KeyRow>`
    select ${COLUMNS} from api_key where id = ${id} and team_id = coalesce(${team}, team_id)`;
  return before && toKey(before);
}

/**
 * Creates a key with the name, scopes and expiry of a usable key, and ends the old key after `overlapMs`. With
 * `overlapMs` 0, the old key is revoked; otherwise it expires after `overlapMs`, or at its own expiry if that is
 * earlier. Returns the new key, or undefined if the old key is unusable.
 */
export async function rotate(
  tx: Tx,
  input: { teamId: string; id: string; hash: string; prefix: string; overlapMs: number },
): Promise<ApiKey | undefined> {
  const { teamId, id, hash, prefix, overlapMs } = input;
  // The quota is checked before the key is locked, because the check locks the team, and other operations lock the team
  // first.
  if (overlapMs > 0 && (await get(tx, input)) !== undefined) {
    await requireRoom(tx, teamId, 'keys', OVERLAPPING);
  }
  const row = await tx.db.get<KeyRow>`
    select ${COLUMNS} from api_key where team_id = ${teamId} and id = ${id} for update`;
  const old = row && toKey(row);
  if (old === undefined || !isUsable(old, tx.now)) return undefined;
  const { name, scopes, expiresAt } = old;
  const key = await insert(tx, { teamId, name, scopes, expiresAt, hash, prefix });
  if (overlapMs === 0) await revoke(tx, { id });
  else {
    const end = tx.now + overlapMs;
    await tx.db
      .run`update api_key set expires_at = least(coalesce(expires_at, ${end}), ${end}) where id = ${id}`;
  }
  return key;
}

/** Stores when keys were last used, unless a later time is already stored. Does not notify watchers. */
export async function used(tx: Tx, { keys }: { keys: readonly { id: string; at: number }[] }): Promise<void> {
  const statements = tx.db.pick({ sqlite: undefined, postgres: USED });
  if (statements !== undefined) {
    const ids = keys.map(({ id }) => id);
    const times = keys.map(({ at }) => at);
    await Promise.all([tx.db.lock(statements.lock, ids), tx.db.run(statements.update, ids, times)]);
    return;
  }
  for (const { id, at } of keys)
    await tx.db.run`
      update api_key set last_used_at = greatest(coalesce(last_used_at, 0), ${at}) where id = ${id}`;
}

/**
 * In a distributed database, every statement that changes a key runs on all nodes: 500 statements took 2.4 s there, and
 * these two take 57 ms. Keys are locked in the order of their ids, so that no two nodes deadlock.
 */
const USED = {
  lock: 'select 1 from api_key where id = any ($1::text[]) order by id for no key update',
  update: `
    update api_key set last_used_at = greatest(coalesce(last_used_at, 0), used.at)
    from unnest($1::text[], $2::bigint[]) as used (id, at) where api_key.id = used.id`,
};

/** Increases the counter of key changes, so that other nodes reload their cached keys. */
export async function touchKeys(tx: Tx): Promise<void> {
  tx.touched.keys = true;
  if (tx.db.pick({ sqlite: true, postgres: false })) return;
  const row = await tx.db.get<{ value: string }>(
    `insert into instance (name, value) values ('keys_changed', '1')
     on conflict (name) do update set value = (instance.value::bigint + 1)::text
     returning value`,
  );
  tx.keysChanged = Number(row?.value);
}

function toKey(row: KeyRow): ApiKey {
  return { ...row, scopes: JSON.parse(row.scopes) };
}
