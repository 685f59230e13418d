/** Expires deliveries that have waited too long, and deletes old events, deliveries, attempts and replays. */

import { both, deletion } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { waitingLanes } from './lanes.ts';
import { UsageTally, writeUsage } from './usage.ts';

/**
 * The cursor at which expiry starts. Expiry visits one webhook after another, and the deliveries of each webhook from
 * the oldest to the newest.
 */
export const EXPIRE_START = { teamId: '', webhookId: '', createdAt: -1, id: '' };
type ExpirePlace = typeof EXPIRE_START;

/**
 * Marks deliveries as dead that have waited longer than `olderMs`. Visits at most `limit` webhooks and deliveries;
 * `next` is null at the end of a round. Without the cursor, every call would again read the deliveries that earlier
 * calls have kept.
 */
export async function expire(
  tx: Tx,
  { olderMs, limit, after }: { olderMs: number; limit: number; after: ExpirePlace },
): Promise<{ next: ExpirePlace | null }> {
  const before = tx.now - olderMs;
  const lanes = await tx.db.all<ExpireLane>(LANES_BEHIND, after.teamId, after.webhookId, before, limit + 1);
  let room = limit;
  let place = after;
  for (const { teamId, webhookId, hasOld, isActive } of lanes) {
    // If the cursor is inside a lane, the previous call has already counted that lane.
    const isNext = teamId !== place.teamId || webhookId !== place.webhookId;
    if (isNext) place = { ...EXPIRE_START, teamId, webhookId };
    if (room <= 0) return { next: place };
    const old = hasOld ? await waitingSince(tx, { place, before, limit: room }) : [];
    // A delivery to an active webhook that was never attempted is kept, because the service was down, not the endpoint.
    const givenUp = old.filter(({ attempt }) => attempt > 0 || !isActive).map(({ id }) => id);
    await countDead(tx, place, await giveUp(tx, teamId, givenUp));
    const last = old.at(-1);
    if (last !== undefined && old.length === room) {
      return { next: { ...place, createdAt: last.createdAt, id: last.id } };
    }
    room -= old.length + (isNext ? 1 : 0);
  }
  return { next: lanes.length > limit ? place : null };
}

interface ExpireLane {
  teamId: string;
  webhookId: string;
  hasOld: boolean;
  isActive: boolean;
}

// The lane of the cursor, and the next `limit` lanes.
const LANES_BEHIND = both(
  (pick) => `
  ${pick(waitingLanes({ teamId: '$1', webhookId: '$2' }))}
  select waiting_lane.team_id as "teamId", waiting_lane.webhook_id as "webhookId",
    (select true from delivery old /* use delivery_history */
     where old.team_id = waiting_lane.team_id and old.webhook_id = waiting_lane.webhook_id
       and (old.state || '') = 'waiting' and old.created_at < $3
     order by old.created_at, old.id limit 1) is not null as "hasOld",
    coalesce(
      (select webhook.state = 'active' from webhook
       where webhook.team_id = waiting_lane.team_id and webhook.id = waiting_lane.webhook_id), false) as "isActive"
  from waiting_lane limit $4`,
);

function waitingSince(
  tx: Tx,
  { place, before, limit }: { place: ExpirePlace; before: number; limit: number },
): Promise<{ id: string; createdAt: number; attempt: number }[]> {
  return tx.db.all<{ id: string; createdAt: number; attempt: number }>`
    select id, created_at as "createdAt", attempt from delivery /* use delivery_history */
    where team_id = ${place.teamId} and webhook_id = ${place.webhookId} and (state || '') = 'waiting'
      and created_at < ${before} and (created_at, id) > (${place.createdAt}, ${place.id})
    order by created_at, id limit ${limit}`;
}

/** Marks deliveries as dead, except those that are no longer waiting. Returns the number of dead deliveries. */
async function giveUp(tx: Tx, teamId: string, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  return tx.db.run`
    update delivery set state = 'dead', next_at = null
    where team_id = ${teamId} and id = any(${ids}::text[]) and state = 'waiting'`;
}

/** Adds dead deliveries to the usage counts. All other deliveries are counted by their attempts. */
async function countDead(tx: Tx, { teamId, webhookId }: ExpirePlace, dead: number): Promise<void> {
  if (dead === 0) return;
  const tally = new UsageTally();
  tally.addDeliveries({ teamId, webhookId, at: tx.now }, { dead });
  await writeUsage(tx, tally.rows);
}

/** The cursor at which pruning starts, before the first event. */
export const PRUNE_START = { teamId: '', sequence: 0 };
type PrunePlace = typeof PRUNE_START;

/**
 * Deletes attempts older than `attemptsMs`, and events and finished replays older than `eventsMs`; events are deleted
 * with all their deliveries. Events with a waiting delivery are kept, and so is the newest event of each team. Deletes
 * about `limit` rows of each table per call; call until `done`. `next` is null at the end of a round through the
 * events.
 */
export async function prune(
  tx: Tx,
  input: { attemptsMs: number; eventsMs: number; limit: number; after: PrunePlace },
): Promise<{ done: boolean; next: PrunePlace | null }> {
  const { limit } = input;
  const next = await pruneEvents(tx, input);
  const [attempts] = await Promise.all([
    tx.db.run(OLD_ATTEMPTS, tx.now - input.attemptsMs, limit),
    tx.db.run(OLD_REPLAYS, tx.now - input.eventsMs, limit),
  ]);
  return { done: attempts < limit && next === null, next };
}

const OLD_ATTEMPTS = deletion({
  table: 'attempt',
  key: 'team_id, delivery_id, number',
  first: 'where started_at < $1 order by started_at limit $2',
  index: 'attempt_age',
});
const OLD_REPLAYS = deletion({
  table: 'replay',
  key: 'team_id, id',
  first: `where created_at < $1 and state = 'done' order by created_at limit $2`,
  index: 'replay_age',
});

/** Deletes old events of every team, up to `limit` events and deliveries per call. */
async function pruneEvents(
  tx: Tx,
  { eventsMs, limit, after }: { eventsMs: number; limit: number; after: PrunePlace },
): Promise<PrunePlace | null> {
  const before = tx.now - eventsMs;
  const teams = await tx.db.all<EventsOfTeam>(TEAMS_BEHIND, after.teamId, after.sequence, limit);
  let room = limit;
  for (const { teamId, lastSequence, sequence: first, createdAt } of teams) {
    let sequence = teamId === after.teamId ? after.sequence : 0;
    const hasOld =
      first !== null && mayGo(tx, { lastSequence, sequence: first, createdAt }, before) !== 'stays';
    if (hasOld) {
      const pruned = await pruneTeam(tx, { teamId, lastSequence, after: sequence, before, limit: room });
      room -= pruned.cost;
      if (!pruned.done) return { teamId, sequence: pruned.sequence };
    } else room -= 1;
    sequence = Number.MAX_SAFE_INTEGER;
    if (room <= 0) return { teamId, sequence };
  }
  return null;
}

/** A team, and its first event after the cursor, if any. */
interface EventsOfTeam {
  teamId: string;
  lastSequence: number;
  sequence: number | null;
  createdAt: number;
}

const FIRST_BEHIND = `
  from event where event.team_id = team.id and event.sequence > case when team.id = $1 then $2::bigint else 0 end
  order by event.sequence limit 1`;
const TEAMS_BEHIND = `
  select team.id as "teamId",
    (select sequence from event where event.team_id = team.id order by sequence desc limit 1) as "lastSequence",
    (select sequence ${FIRST_BEHIND}) as sequence,
    (select created_at ${FIRST_BEHIND}) as "createdAt"
  from team where team.id >= $1 order by team.id limit $3`;

/**
 * Decides whether an event may be deleted. The newest event of a team stays, because `events.ts` derives the next
 * sequence from it. A recent event stays, and so do all events after it. An event dated in the future was created
 * before the clock was set back, and is skipped.
 */
function mayGo(
  { now }: Tx,
  event: { createdAt: number; sequence: number; lastSequence: number },
  before: number,
): 'goes' | 'is skipped' | 'stays' {
  if (event.createdAt > now && event.sequence < event.lastSequence) return 'is skipped';
  return event.createdAt >= before || event.sequence >= event.lastSequence ? 'stays' : 'goes';
}

/**
 * Deletes the next old events of a team with their deliveries. If a delivery of an event is waiting, the event and all
 * of its deliveries stay. The events are locked, so that no event is replayed while it is being deleted.
 *
 * @returns the `sequence` of the last event visited, and `done` if no old events follow it
 */
async function pruneTeam(
  tx: Tx,
  team: { teamId: string; lastSequence: number; after: number; before: number; limit: number },
): Promise<{ done: boolean; sequence: number; cost: number }> {
  const { teamId, lastSequence, after, before, limit } = team;
  const events = await tx.db.all<{ sequence: number; createdAt: number }>`
    select sequence, created_at as "createdAt" from event
    where team_id = ${teamId} and sequence > ${after} order by sequence limit ${limit}`;
  const places = events.map((event) => mayGo(tx, { ...event, lastSequence }, before));
  const end = places.indexOf('stays');
  const old = events
    .filter((_, n) => places[n] === 'goes' && (end === -1 || n < end))
    .map(({ sequence }) => sequence);
  const seen = end === -1 ? events.length : end + 1;
  // The first events alone may have more deliveries than one call deletes. Later events are then left for the next
  // call.
  const enough = await tx.db.get<{ sequence: number }>`
    select event_sequence as sequence from delivery /* use delivery_event */
    where team_id = ${teamId} and event_sequence = any(${old}::bigint[])
    order by event_sequence, id limit 1 offset ${limit}`;
  const first = enough === undefined ? old : old.filter((sequence) => sequence <= enough.sequence);
  const left = await deleteEvents(tx, { teamId, sequences: first, limit });
  if (left.firstLeft !== undefined) return { done: false, sequence: left.firstLeft - 1, cost: limit };
  if (enough !== undefined) return { done: false, sequence: enough.sequence, cost: limit };
  const done = end !== -1 || events.length < limit;
  return { done, sequence: events.at(-1)?.sequence ?? after, cost: seen + left.deliveries };
}

/**
 * Deletes up to `limit` deliveries, and the events that then have no deliveries. Returns the first event that still has
 * some.
 */
async function deleteEvents(
  tx: Tx,
  { teamId, sequences, limit }: { teamId: string; sequences: readonly number[]; limit: number },
): Promise<{ firstLeft: number | undefined; deliveries: number }> {
  if (sequences.length === 0) return { firstLeft: undefined, deliveries: 0 };
  const [locked, waiting] = await Promise.all([
    tx.db.all<{ sequence: number }>`
      select sequence from event where team_id = ${teamId} and sequence = any(${sequences}::bigint[])
      order by sequence for update skip locked`,
    // This statement runs after the events are locked, when no delivery can be added to them.
    tx.db.all<{ sequence: number }>`
      select sequence from unnest(${sequences}::bigint[]) as old (sequence)
      where (select true from delivery /* use delivery_event */
             where team_id = ${teamId} and event_sequence = old.sequence and state = 'waiting' limit 1)`,
  ]);
  const waits = new Set(waiting.map(({ sequence }) => sequence));
  const ended = locked.map(({ sequence }) => sequence).filter((sequence) => !waits.has(sequence));
  const deliveries = await tx.db.all<{ id: string; sequence: number }>`
    select id, event_sequence as sequence from delivery /* use delivery_event */
    where team_id = ${teamId} and event_sequence = any(${ended}::bigint[]) order by event_sequence, id
    limit ${limit + 1}`;
  const ids = deliveries.slice(0, limit).map(({ id }) => id);
  // The next step deletes this event and its remaining deliveries.
  const firstLeft = deliveries[limit]?.sequence;
  const emptied = ended.filter((sequence) => firstLeft === undefined || sequence < firstLeft);
  await Promise.all([
    // Deliveries are deleted first. If an attempt is being stored, this statement waits for it, and the next one finds
    // the attempt.
    tx.db.run`delete from delivery where team_id = ${teamId} and id = any(${ids}::text[])`,
    tx.db.run`delete from attempt where team_id = ${teamId} and delivery_id = any(${ids}::text[])`,
    tx.db.run`delete from event where team_id = ${teamId} and sequence = any(${emptied}::bigint[])`,
  ]);
  return { firstLeft, deliveries: ids.length };
}
