/** Idempotency keys: a repeated call returns what the first one made. */
import { type IdempotentCall, partsOf, REMEMBERED_MS, refuseOther } from '../idempotent-call.ts';
import type { Tx } from './transaction.ts';

/** How many expired keys each new one deletes: more than one, so that they become fewer. */
const FORGOTTEN_AT_ONCE = 10;

/**
 * What the first call with this key made within the last 24 h, else what `make` returns now, which must be JSON;
 * undefined is not remembered.
 *
 * @throws Problem `idempotency_key_reused`
 */
export function once<T>(tx: Tx, call: IdempotentCall, make: () => T | undefined): T | undefined {
  const { teamId, operation, target, idempotencyKey = null } = call;
  const parts = partsOf(idempotencyKey);
  if (parts === undefined) return make();
  const { key, sent } = parts;
  const first = tx.db.get<{ result_id: string; sent: string | null }>(
    `select result_id, sent from idempotency
     where team_id = ? and operation = ? and target = ? and key = ? and created_at > ?`,
    teamId,
    operation,
    target,
    key,
    tx.now - REMEMBERED_MS,
  );
  if (first !== undefined) {
    refuseOther(first.sent, sent);
    tx.repeated = true;
    return JSON.parse(first.result_id) as T;
  }
  const made = make();
  if (made === undefined) return undefined;
  remember(tx, { teamId, operation, target, key, sent }, JSON.stringify(made));
  return made;
}

/** Stores the result of the first call with a key, and deletes some expired keys. */
export function remember(
  tx: Tx,
  at: { teamId: string; operation: string; target: string; key: string; sent: string | null },
  result: string,
): void {
  tx.db.run(
    `insert into idempotency (team_id, operation, target, key, result_id, created_at, sent)
     values (?, ?, ?, ?, ?, ?, ?)
     on conflict do update set
       result_id = excluded.result_id, created_at = excluded.created_at, sent = excluded.sent`,
    at.teamId,
    at.operation,
    at.target,
    at.key,
    result,
    tx.now,
    at.sent,
  );
  tx.db.run(
    `delete from idempotency where (team_id, operation, target, key) in
       (select team_id, operation, target, key from idempotency
        where created_at <= ? order by created_at limit ?)`,
    tx.now - REMEMBERED_MS,
    FORGOTTEN_AT_ONCE,
  );
}
