/** Idempotency keys: a repeated call returns what the first one made. */
import { type IdempotentCall, REMEMBERED_MS } from '../idempotent-call.ts';
import type { Tx } from './transaction.ts';

/** How many expired keys each new one deletes: more than one, so that they become fewer. */
const FORGOTTEN_AT_ONCE = 10;

/**
 * What the first call with this key made within the last 24 h, else what `make` returns now, which must be JSON;
 * undefined is not remembered.
 */
export function once<T>(tx: Tx, call: IdempotentCall, make: () => T | undefined): T | undefined {
  const { teamId, operation, target, idempotencyKey: key = null } = call;
  if (key === null) return make();
  const first = tx.db.get<{ result_id: string }>(
    `select result_id from idempotency
     where team_id = ? and operation = ? and target = ? and key = ? and created_at > ?`,
    teamId,
    operation,
    target,
    key,
    tx.now - REMEMBERED_MS,
  );
  if (first !== undefined) {
    tx.repeated = true;
    return JSON.parse(first.result_id) as T;
  }
  const made = make();
  if (made === undefined) return undefined;
  remember(tx, { teamId, operation, target, key }, JSON.stringify(made));
  return made;
}

/** Stores the result of the first call with a key, and deletes some expired keys. */
export function remember(
  tx: Tx,
  at: { teamId: string; operation: string; target: string; key: string },
  result: string,
): void {
  tx.db.run(
    `insert into idempotency (team_id, operation, target, key, result_id, created_at)
     values (?, ?, ?, ?, ?, ?)
     on conflict do update set result_id = excluded.result_id, created_at = excluded.created_at`,
    at.teamId,
    at.operation,
    at.target,
    at.key,
    result,
    tx.now,
  );
  tx.db.run(
    `delete from idempotency where (team_id, operation, target, key) in
       (select team_id, operation, target, key from idempotency
        where created_at <= ? order by created_at limit ?)`,
    tx.now - REMEMBERED_MS,
    FORGOTTEN_AT_ONCE,
  );
}
