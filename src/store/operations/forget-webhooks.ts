/** Deletes the rows of removed webhooks once they have no deliveries left, which refer to them. */
import type { Tx } from '../sql.ts';

/** The cursor: a removed webhook, in the order of removal. */
export interface ForgetPlace {
  deletedAt: number;
  teamId: string;
  id: string;
}

/** Before the first. */
export const FORGET_START: ForgetPlace = { deletedAt: -1, teamId: '', id: '' };

const REMOVED = `
  select deleted_at as "deletedAt", team_id as "teamId", id from webhook /* use webhook_removed */
  where state = 'deleted' and deleted_at < $1 and (deleted_at, team_id, id) > ($2, $3, $4)
  order by deleted_at, team_id, id limit $5`;

const FORGET = `
  delete from webhook where team_id = $1 and id = $2 and state = 'deleted' and not exists (
    select 1 from delivery /* use delivery_history */ where delivery.team_id = $1 and delivery.webhook_id = $2)`;

/** Looks at `limit` webhooks at most; `next` is null at the end of a round through all. */
export async function forget(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ForgetPlace },
): Promise<{ forgotten: number; next: ForgetPlace | null }> {
  const { deletedAt, teamId, id } = after;
  const removed = await tx.db.all<ForgetPlace>(REMOVED, tx.now - olderMs, deletedAt, teamId, id, limit);
  const gone = await Promise.all(removed.map((one) => tx.db.run(FORGET, one.teamId, one.id)));
  const forgotten = removed.filter((_, at) => gone[at] === 1);
  // Only PostgreSQL has leases.
  const forgetLane = tx.db.pick({
    sqlite: async () => 0,
    postgres: (one: ForgetPlace) =>
      tx.db.run('delete from lane where team_id = $1 and webhook_id = $2', one.teamId, one.id),
  });
  await Promise.all(forgotten.map(forgetLane));
  return {
    forgotten: forgotten.length,
    next: removed.length < limit ? null : (removed.at(-1) as ForgetPlace),
  };
}
