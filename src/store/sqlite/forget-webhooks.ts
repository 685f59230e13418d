/** Forgetting webhooks that were removed, once none of their deliveries is left: till then those are found by them. */
import type { Tx } from './transaction.ts';

/** The removed webhook that the forgetting has come to, in the order of their removal. */
export interface ForgetPlace {
  deletedAt: number;
  teamId: string;
  id: string;
}

/** Before the first. */
export const FORGET_START: ForgetPlace = { deletedAt: -1, teamId: '', id: '' };

/** Looks at `limit` of them at most; `next` is null at the end of a round through all. */
export function forget(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ForgetPlace },
): { forgotten: number; next: ForgetPlace | null } {
  const removed = tx.db.all<ForgetPlace>(
    `select deleted_at as deletedAt, team_id as teamId, id from webhook indexed by webhook_removed
     where state = 'deleted' and deleted_at < ? and (deleted_at, team_id, id) > (?, ?, ?)
     order by deleted_at, team_id, id limit ?`,
    tx.now - olderMs,
    after.deletedAt,
    after.teamId,
    after.id,
    limit,
  );
  let forgotten = 0;
  for (const { teamId, id } of removed) {
    forgotten += tx.db.run(
      `delete from webhook where team_id = ?1 and id = ?2
         and not exists (select 1 from delivery indexed by delivery_history where team_id = ?1 and webhook_id = ?2)`,
      teamId,
      id,
    );
  }
  return { forgotten, next: removed.length < limit ? null : { ...(removed.at(-1) as ForgetPlace) } };
}
