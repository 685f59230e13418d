/** API keys: never the key itself, only its hash. */
import { OVERLAPPING } from '../../model/quota.ts';
import { type ApiKey, isUsable } from '../../model/team.ts';
import { newId } from '../../std/id.ts';
import { Part, type Tx, type View } from '../sql.ts';
import type { KeyOperations } from '../store.ts';
import { once } from './idempotency.ts';
import { requireRoom } from './quotas.ts';

type Input<Name extends keyof KeyOperations> = Parameters<KeyOperations[Name]>[0];

interface KeyRow extends Omit<ApiKey, 'scopes'> {
  scopes: string;
}

const COLUMNS = new Part(`id, team_id as "teamId", name, hash, prefix, scopes, created_at as "createdAt",
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt",
  coalesce(watched_from, created_at) as "watchedFrom"`);

export async function create(tx: Tx, input: Input<'create'>): Promise<ApiKey> {
  const { teamId, idempotencyKey = null } = input;
  const call = { teamId, operation: 'keys.create', target: '', idempotencyKey } as const;
  const id = await once(tx, call, async () => {
    if ((await byHash(tx, input)) === undefined) await requireRoom(tx, teamId, 'keys');
    return (await insert(tx, input)).id;
  });
  return (await byId(tx, id as string)) as ApiKey;
}

async function insert(tx: Tx, input: Input<'create'>): Promise<ApiKey> {
  const made = await tx.db.run`
    insert into api_key (id, team_id, name, hash, prefix, scopes, created_at, expires_at)
    values (${newId('key', tx.now)}, ${input.teamId}, ${input.name},
      ${input.hash}, ${input.prefix}, ${JSON.stringify(input.scopes)}, ${tx.now}, ${input.expiresAt})
    on conflict (hash) do nothing`;
  if (made === 0) tx.repeated = true;
  await touchKeys(tx);
  return (await byHash(tx, { hash: input.hash })) as ApiKey;
}

export async function byHash(view: View, { hash }: Input<'byHash'>): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`select ${COLUMNS} from api_key where hash = ${hash}`;
  return row && toKey(row);
}

/** A key of any team. */
export async function byId(view: View, id: string): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`select ${COLUMNS} from api_key where id = ${id}`;
  return row && toKey(row);
}

export async function get(view: View, { teamId, id }: Input<'get'>): Promise<ApiKey | undefined> {
  const row = await view.db.get<KeyRow>`
    select ${COLUMNS} from api_key where team_id = ${teamId} and id = ${id}`;
  return row && toKey(row);
}

export async function list(view: View, { teamId, after = '', limit }: Input<'list'>): Promise<ApiKey[]> {
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

export async function revoke(tx: Tx, { id, teamId }: Input<'revoke'>): Promise<ApiKey | undefined> {
  const of = [id, teamId ?? null];
  const row = await tx.db.get<KeyRow>(
    `update api_key set revoked_at = $3
     where id = $1 and team_id = coalesce($2, team_id) and revoked_at is null returning ${COLUMNS}`,
    ...of,
    tx.now,
  );
  await touchKeys(tx);
  if (row !== undefined) return toKey(row);
  tx.repeated = true;
  const before = await tx.db.get<KeyRow>(
    `select ${COLUMNS} from api_key where id = $1 and team_id = coalesce($2, team_id)`,
    ...of,
  );
  return before && toKey(before);
}

export async function rotate(tx: Tx, input: Input<'rotate'>): Promise<ApiKey | undefined> {
  const { teamId, id, hash, prefix, overlapMs } = input;
  // Before the key is locked, because others lock the team first.
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
    await tx.db.run(
      'update api_key set expires_at = least(coalesce(expires_at, $1), $1) where id = $2',
      tx.now + overlapMs,
      id,
    );
  }
  return key;
}

/** Updates keys in the order of their ids, so that no two nodes deadlock. */
export async function used(tx: Tx, { keys }: Input<'used'>): Promise<void> {
  for (const { id, at } of keys.toSorted((one, other) => (one.id < other.id ? -1 : 1)))
    await tx.db.run`
      update api_key set last_used_at = greatest(coalesce(last_used_at, 0), ${at}) where id = ${id}`;
}

/** Increases the counter of key changes, by which other nodes notice that their cached keys are stale. */
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
