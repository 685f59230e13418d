/** Giving up what has waited too long, and deleting what is too old: events, deliveries and attempts. */
import { WAITING_LANES } from './lanes.ts';
import type { Tx } from './transaction.ts';

const EXPIRED_LANES = `
  ${WAITING_LANES}
  select lane.team_id as teamId, lane.webhook_id as webhookId from lane
  where lane.webhook_id is not null and exists (
    select 1 from delivery d indexed by delivery_history
    where d.team_id = lane.team_id and d.webhook_id = lane.webhook_id and d.state = 'waiting' and d.created_at < ?)
  limit ?`;

export function expire(tx: Tx, { olderMs, limit }: { olderMs: number; limit: number }): { done: boolean } {
  const before = tx.now - olderMs;
  let room = limit;
  // Each lane has at least one, so no more of them can be dealt with.
  for (const { teamId, webhookId } of tx.db.all<{ teamId: string; webhookId: string }>(
    EXPIRED_LANES,
    before,
    limit,
  )) {
    room -= tx.db.run(
      `update delivery set state = 'dead', next_at = null where (team_id, id) in
         (select team_id, id from delivery indexed by delivery_history
          where team_id = ? and webhook_id = ? and state = 'waiting' and created_at < ? limit ?)`,
      teamId,
      webhookId,
      before,
      room,
    );
    if (room <= 0) return { done: false };
  }
  return { done: true };
}

/** The event that the pruning has come to. */
export interface PrunePlace {
  teamId: string;
  sequence: number;
}

/** Before the first. */
export const PRUNE_START: PrunePlace = { teamId: '', sequence: 0 };

/** Deletes some of everything; `next` is null at the end of a round through the events. */
export function prune(
  tx: Tx,
  input: { attemptsMs: number; eventsMs: number; limit: number; after: PrunePlace },
): { attemptsDone: boolean; next: PrunePlace | null } {
  const { limit } = input;
  const attempts = tx.db.run(
    `delete from attempt where (team_id, delivery_id, number) in
       (select team_id, delivery_id, number from attempt indexed by attempt_age
        where started_at < ? order by started_at limit ?)`,
    tx.now - input.attemptsMs,
    limit,
  );
  tx.db.run(
    `delete from replay where (team_id, id) in
       (select team_id, id from replay indexed by replay_age
        where created_at < ? and state = 'done' order by created_at limit ?)`,
    tx.now - input.eventsMs,
    limit,
  );
  return { attemptsDone: attempts < limit, next: pruneEvents(tx, input) };
}

/**
 * Goes through the old events of every team. One that has a delivery waiting stays with all that it has; the
 * newest of a team stays, so that there is always one that says how far the team has come.
 */
function pruneEvents(
  tx: Tx,
  { eventsMs, limit, after }: { eventsMs: number; limit: number; after: PrunePlace },
): PrunePlace | null {
  let place = after;
  for (let room = limit; room > 0; room--) {
    const event = nextEvent(tx, place);
    if (event === undefined) return null;
    const { teamId, sequence } = event;
    if (event.createdAt >= tx.now - eventsMs || sequence >= event.lastSequence) {
      place = { teamId, sequence: Number.MAX_SAFE_INTEGER };
      continue;
    }
    const deliveries = deliveriesOf(tx, event);
    if (deliveries.every(({ state }) => state !== 'waiting')) {
      for (const { id } of deliveries.slice(0, room)) deleteDelivery(tx, teamId, id);
      // The rest of them, and the event, come next time.
      if (deliveries.length > room) return place;
      tx.db.run('delete from event where team_id = ? and sequence = ?', teamId, sequence);
    }
    room -= deliveries.length;
    place = { teamId, sequence };
  }
  return place;
}

function nextEvent(
  tx: Tx,
  after: PrunePlace,
): (PrunePlace & { createdAt: number; lastSequence: number }) | undefined {
  return tx.db.get<PrunePlace & { createdAt: number; lastSequence: number }>(
    `select team_id as teamId, sequence, created_at as createdAt,
            (select last_sequence from team where team.id = event.team_id) as lastSequence
     from event where (team_id, sequence) > (?, ?) order by team_id, sequence limit 1`,
    after.teamId,
    after.sequence,
  );
}

function deliveriesOf(tx: Tx, { teamId, sequence }: PrunePlace): { id: string; state: string }[] {
  return tx.db.all<{ id: string; state: string }>(
    'select id, state from delivery indexed by delivery_event where team_id = ? and event_sequence = ?',
    teamId,
    sequence,
  );
}

function deleteDelivery(tx: Tx, teamId: string, id: string): void {
  tx.db.run('delete from attempt where team_id = ? and delivery_id = ?', teamId, id);
  tx.db.run('delete from delivery where team_id = ? and id = ?', teamId, id);
}
