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

const FORGET = `
  with removed as materialized (
    select deleted_at, team_id, id from webhook
    where state = 'deleted' and deleted_at < $1 and (deleted_at, team_id, id) > ($2, $3, $4)
    order by deleted_at, team_id, id limit $5
  ),
  gone as (
    delete from webhook using removed
    where webhook.team_id = removed.team_id and webhook.id = removed.id and webhook.state = 'deleted'
      and not exists (select 1 from delivery where delivery.team_id = removed.team_id
                      and delivery.webhook_id = removed.id)
    returning webhook.team_id, webhook.id
  ),
  gone_lane as (
    delete from lane using gone where lane.team_id = gone.team_id and lane.webhook_id = gone.id
  )
  select deleted_at as "deletedAt", team_id as "teamId", id, gone.team_id is not null as "isGone"
  from removed left join gone using (team_id, id) order by deleted_at, team_id, id`;

/** Looks at `limit` webhooks at most; `next` is null at the end of a round through all. */
export async function forget(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ForgetPlace },
): Promise<{ forgotten: number; next: ForgetPlace | null }> {
  const removed = await tx.db.all<ForgetPlace & { isGone: boolean }>(
    FORGET,
    tx.now - olderMs,
    after.deletedAt,
    after.teamId,
    after.id,
    limit,
  );
  const { deletedAt, teamId, id } = removed.at(-1) ?? FORGET_START;
  return {
    forgotten: removed.filter(({ isGone }) => isGone).length,
    next: removed.length < limit ? null : { deletedAt, teamId, id },
  };
}
