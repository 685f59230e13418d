/** Expiring deliveries that waited too long, and pruning old events, deliveries, attempts and replays. */
import { UsageTally } from '../usage-tally.ts';
import type { Tx } from './transaction.ts';
import { writeUsage } from './usage.ts';

/** The last delivery looked at: by webhook, and within each oldest first. */
export interface ExpireCursor {
  teamId: string;
  webhookId: string;
  createdAt: number;
  id: string;
}

export const EXPIRE_START: ExpireCursor = { teamId: '', webhookId: '', createdAt: -1, id: '' };

/**
 * Looks at up to `limit` webhooks and deliveries; `next` is null at the end of a round through all that wait. Without
 * a cursor every call would read the deliveries again that are kept because they were never tried.
 */
export function expire(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ExpireCursor },
): { next: ExpireCursor | null } {
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
  { place, before, limit }: { place: ExpireCursor; before: number; limit: number },
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

/** Deliveries never sent to an active webhook are kept: we were down, not the endpoint. */
function isActive(tx: Tx, { teamId, webhookId }: ExpireCursor): boolean {
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

/** Counted here, because there is no attempt from which usage could count them. */
function countDead(tx: Tx, { teamId, webhookId }: ExpireCursor, dead: number): void {
  if (dead === 0) return;
  const tally = new UsageTally();
  tally.addDeliveries({ teamId, webhookId, at: tx.now }, { dead });
  writeUsage(tx, tally.rows);
}

function nextLane(
  tx: Tx,
  { teamId, webhookId }: ExpireCursor,
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

/** The last event looked at. */
export interface PruneCursor {
  teamId: string;
  sequence: number;
}

export const PRUNE_START: PruneCursor = { teamId: '', sequence: 0 };

/** Deletes some rows of each kind; `next` is null at the end of a round through the events. */
export function prune(
  tx: Tx,
  input: { attemptsMs: number; eventsMs: number; limit: number; after: PruneCursor },
): { done: boolean; next: PruneCursor | null } {
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
  const next = pruneEvents(tx, input);
  return { done: attempts < limit && next === null, next };
}

/**
 * Goes through the old events of every team. An event with a waiting delivery stays with all its deliveries; the newest
 * event of a team stays, so that the team's sequence can always be seen.
 */
function pruneEvents(
  tx: Tx,
  { eventsMs, limit, after }: { eventsMs: number; limit: number; after: PruneCursor },
): PruneCursor | null {
  let place = after;
  for (let room = limit; room > 0; room--) {
    const event = nextEvent(tx, place);
    if (event === undefined) return null;
    const { teamId, sequence } = event;
    // Dated before the clock was set back: later events may be old nevertheless.
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
      // The other deliveries, and the event itself, go with the next call.
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
  after: PruneCursor,
): (PruneCursor & { createdAt: number; lastSequence: number }) | undefined {
  return tx.db.get<PruneCursor & { createdAt: number; lastSequence: number }>(
    `select team_id as teamId, sequence, created_at as createdAt,
            (select last_sequence from team where team.id = event.team_id) as lastSequence
     from event where (team_id, sequence) > (?, ?) order by team_id, sequence limit 1`,
    after.teamId,
    after.sequence,
  );
}

function deliveriesOf(tx: Tx, { teamId, sequence }: PruneCursor): { id: string; state: string }[] {
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
