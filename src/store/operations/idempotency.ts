/** Idempotency keys: repeating a call with the same key returns the result of the first call. */

import { Problem } from '../../model/error.ts';
import { deletion } from '../sql.ts';
import type { Tx } from '../transaction.ts';

/**
 * How many expired keys of a team are deleted for each new key. Deleting more than one makes a backlog of expired keys
 * shrink.
 */
const FORGOTTEN_AT_ONCE = 10;
/** The stored result while the first call has not returned one. */
const NOTHING = '';

/**
 * Returns the result of the first call with this key within the last 24 h. If there was no such call, runs `make` and
 * stores its result as JSON, unless `make` returned undefined.
 *
 * @throws Problem `idempotency_key_reused`
 */
export async function once<T>(
  tx: Tx,
  call: IdempotentCall,
  make: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const { teamId, operation, target, idempotencyKey = null } = call;
  if (idempotencyKey === null) return make();
  const { key, sent } =
    typeof idempotencyKey === 'string' ? { key: idempotencyKey, sent: null } : idempotencyKey;
  // The statement locks the row until the commit, so that only one of two concurrent calls runs `make`.
  const since = tx.now - REMEMBERED_MS;
  const row = await tx.db.get<{ result_id: string; sent: string | null }>`
    insert into idempotency (team_id, operation, target, key, result_id, created_at)
    values (${teamId}, ${operation}, ${target}, ${key}, '', ${tx.now})
    on conflict (team_id, operation, target, key) do update set
      result_id = case when idempotency.created_at > ${since} then idempotency.result_id else '' end,
      created_at = case when idempotency.created_at > ${since} then idempotency.created_at
                   else excluded.created_at end
    returning result_id, sent`;
  if (row !== undefined && row.result_id !== NOTHING) {
    if (row.sent !== null && sent !== null && row.sent !== sent) throw new Problem('idempotency_key_reused');
    tx.repeated = true;
    return JSON.parse(row.result_id) as T;
  }
  const made = await make();
  if (made === undefined) return undefined;
  await tx.db.run`
    update idempotency set result_id = ${JSON.stringify(made)}, created_at = ${tx.now}, sent = ${sent}
    where team_id = ${teamId} and operation = ${operation} and target = ${target} and key = ${key}`;
  await forget(tx, teamId);
  return made;
}

const EXPIRED = deletion({
  table: 'idempotency',
  key: 'team_id, operation, target, key',
  first: 'where team_id = $1 and created_at <= $2 order by created_at limit $3',
  index: 'idempotency_age',
});

/** Deletes some expired keys of a team. */
export async function forget(tx: Tx, teamId: string): Promise<void> {
  await tx.db.run(EXPIRED, teamId, tx.now - REMEMBERED_MS, FORGOTTEN_AT_ONCE);
}

/** How long an idempotency key is remembered. */
export const REMEMBERED_MS = 24 * 3_600_000;

/**
 * An idempotency key, optionally with a hash of the request (`sent`). A call that repeats the key with a different hash
 * is rejected.
 */
export type IdempotencyKey = string | { key: string; sent: string } | null;

export interface IdempotentCall {
  teamId: string;
  operation:
    | 'keys.create'
    | 'feeds.create'
    | 'deliveries.startRetry'
    | 'webhooks.test'
    | 'deliveries.replay'
    | 'deliveries.startReplay';
  /** The key is scoped to this id, which names the object that the call acts on. */
  target: string;
  idempotencyKey?: IdempotencyKey;
}
