/** Calls that are repeated with the same key: they are answered as the first was. */
import { type IdempotentCall, REMEMBERED_MS } from '../idempotent-call.ts';
import type { Tx } from './transaction.ts';

/** Older ones that every new one removes: more than one, so that they get fewer. */
const FORGOTTEN_AT_ONCE = 10;

/** What the first call with this key made within the last 24 h, or what `make` makes: JSON, or nothing to remember. */
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
  tx.db.run(
    `insert into idempotency (team_id, operation, target, key, result_id, created_at)
     values (?, ?, ?, ?, ?, ?)
     on conflict do update set result_id = excluded.result_id, created_at = excluded.created_at`,
    teamId,
    operation,
    target,
    key,
    JSON.stringify(made),
    tx.now,
  );
  forget(tx);
  return made;
}

/** Removes some that are too old. */
export function forget(tx: Tx): void {
  tx.db.run(
    `delete from idempotency where (team_id, operation, target, key) in
       (select team_id, operation, target, key from idempotency
        where created_at <= ? order by created_at limit ?)`,
    tx.now - REMEMBERED_MS,
    FORGOTTEN_AT_ONCE,
  );
}
