/** Giving up what has waited too long, and deleting what is too old: events, deliveries and attempts. */
import { UsageTally } from '../usage-tally.ts';
import type { Tx } from './transaction.ts';
import { writeUsage } from './usage.ts';

/** The delivery that the giving up has come to: webhook by webhook, and of each the oldest first. */
export interface ExpirePlace {
  teamId: string;
  webhookId: string;
  createdAt: number;
  id: string;
}

/** Before the first. */
export const EXPIRE_START: ExpirePlace = { teamId: '', webhookId: '', createdAt: -1, id: '' };

/**
 * Looks at no more than `limit` webhooks and deliveries; `next` is null at the end of a round through all that wait.
 * The place is kept because what is passed over, having never been tried, would be read again by every step.
 */
export function expire(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ExpirePlace },
): { next: ExpirePlace | null } {
  const before = tx.now - olderMs;
  let place = after;
  for (let room = limit; room > 0; room--) {
    const old = waitingSince(tx, { place, before, limit: room });
    const keepsUntried = old.length > 0 && isActive(tx, place);
    const givenUp = old.filter(({ attempt }) => attempt > 0 || !keepsUntried);
    for (const { id } of givenUp) giveUp(tx, place.teamId, id);
    countDead(tx, place, givenUp.length);
    const last = old.at(-1);
    if (last !== undefined && old.length === room) {
      return { next: { ...place, createdAt: last.createdAt, id: last.id } };
    }
    const lane = nextLane(tx, place);
    if (lane === undefined) return { next: null };
    place = { ...EXPIRE_START, ...lane };
    room -= old.length;
  }
  return { next: place };
}

function waitingSince(
  tx: Tx,
  { place, before, limit }: { place: ExpirePlace; before: number; limit: number },
): { id: string; createdAt: number; attempt: number }[] {
  return tx.db.all<{ id: string; createdAt: number; attempt: number }>(
    `select id, created_at as createdAt, attempt from delivery indexed by delivery_history
     where team_id = ? and webhook_id = ? and state = 'waiting' and created_at < ? and (created_at, id) > (?, ?)
     order by created_at, id limit ?`,
    place.teamId,
    place.webhookId,
    before,
    place.createdAt,
    place.id,
    limit,
  );
}

/** What has never been sent to an active webhook stays: then it was we who were away, not its endpoint. */
function isActive(tx: Tx, { teamId, webhookId }: ExpirePlace): boolean {
  return (
    tx.db.get(
      `select 1 from webhook where team_id = ? and id = ? and state = 'active'`,
      teamId,
      webhookId,
    ) !== undefined
  );
}

function giveUp(tx: Tx, teamId: string, id: string): void {
  tx.db.run(`update delivery set state = 'dead', next_at = null where team_id = ? and id = ?`, teamId, id);
}

/** No attempt says of these that they are dead. */
function countDead(tx: Tx, { teamId, webhookId }: ExpirePlace, dead: number): void {
  if (dead === 0) return;
  const tally = new UsageTally();
  tally.addDeliveries({ teamId, webhookId, at: tx.now }, { dead });
  writeUsage(tx, tally.rows);
}

function nextLane(
  tx: Tx,
  { teamId, webhookId }: ExpirePlace,
): { teamId: string; webhookId: string } | undefined {
  type LaneRow = { teamId: string; webhookId: string };
  const first = 'select team_id as teamId, webhook_id as webhookId from delivery indexed by delivery_due';
  return (
    tx.db.get<LaneRow>(
      `${first} where state = 'waiting' and team_id = ? and webhook_id > ? order by webhook_id limit 1`,
      teamId,
      webhookId,
    ) ??
    tx.db.get<LaneRow>(
      `${first} where state = 'waiting' and team_id > ? order by team_id, webhook_id limit 1`,
      teamId,
    )
  );
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
    // Dated before the clock was set back: those behind it may be old nevertheless.
    if (event.createdAt > tx.now && sequence < event.lastSequence) {
      place = { teamId, sequence };
      continue;
    }
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
