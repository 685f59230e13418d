/** Deletes the rows of removed webhooks once they have no deliveries left, which are found by them until then. */
import type { Tx } from './transaction.ts';

/** The last webhook looked at, in the order of removal. */
export interface ForgetCursor {
  deletedAt: number;
  teamId: string;
  id: string;
}

export const FORGET_START: ForgetCursor = { deletedAt: -1, teamId: '', id: '' };

/** Looks at up to `limit` webhooks; `next` is null at the end of a round through all. */
export function forget(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ForgetCursor },
): { forgotten: number; next: ForgetCursor | null } {
  const removed = tx.db.all<ForgetCursor>(
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
  return { forgotten, next: removed.length < limit ? null : { ...(removed.at(-1) as ForgetCursor) } };
}
