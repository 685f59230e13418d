/** Expires deliveries that have waited too long, and deletes old events, deliveries, attempts and replays. */

import { earlier } from '../../std/earlier.ts';
import { deletion } from '../sql.ts';
import type { Tx } from '../transaction.ts';
import { firstEnd, oldestPending } from './rules/decisions.ts';
import { countDead } from './usage.ts';

const AGAIN_MS = 3_600_000;
/** The longest cooldown (`model/rule.ts`). An event that a quiet record needs happened at most this long before its end. */
const MAX_COOLDOWN_MS = 7 * 86_400_000;

/** A place in the deliveries of a team: a webhook, and the last delivery of it that was visited. */
interface ExpirePlace {
  webhookId: string;
  createdAt: number;
  id: string;
}

/**
 * Marks deliveries of a team as dead that are still waiting `olderMs` after they were created, including deliveries to
 * paused webhooks. A delivery to an active webhook that was never attempted is kept for its first attempt, no matter how
 * old it is, because the service was down, not the endpoint.
 *
 * Visits at most `limit` webhooks and deliveries per call; call with `after: next` until `done`. Without the place,
 * every call would again read the deliveries that earlier calls have kept. `at` is when the next of the visited
 * deliveries is old; of a webhook with old deliveries, more are expected to be given up within an hour.
 */
export async function expire(
  tx: Tx,
  {
    teamId,
    olderMs,
    limit,
    after = { webhookId: '', createdAt: -1, id: '' },
  }: { teamId: string; olderMs: number; limit: number; after?: ExpirePlace | undefined },
): Promise<{ done: boolean; next?: ExpirePlace; at: number | null }> {
  const before = tx.now - olderMs;
  const lanes = await tx.db.all<ExpireLane>(LANES_BEHIND, teamId, after.webhookId, limit + 1);
  let room = limit;
  let place = after;
  let at: number | null = null;
  for (const { webhookId, oldestAt, isActive } of lanes) {
    // If the place is inside a lane, the previous call has already counted that lane.
    const isNext = webhookId !== place.webhookId;
    if (isNext) place = { webhookId, createdAt: -1, id: '' };
    if (room <= 0) return { done: false, next: place, at };
    const isOld = oldestAt !== null && oldestAt < before;
    if (!isOld) at = earlier(at, oldestAt === null ? null : oldestAt + olderMs + 1);
    const old = isOld ? await waitingSince(tx, { teamId, place, before, limit: room }) : [];
    const givenUp = old.filter(({ attempt }) => attempt > 0 || !isActive).map(({ id }) => id);
    await countDead(tx, { teamId, webhookId, dead: await giveUp(tx, teamId, givenUp) });
    // Others of the lane become old soon, or those that are kept for their first attempt will fail.
    if (isOld) at = earlier(at, tx.now + AGAIN_MS);
    const last = old.at(-1);
    if (last !== undefined && old.length === room) {
      return { done: false, next: { webhookId, createdAt: last.createdAt, id: last.id }, at };
    }
    room -= old.length + (isNext ? 1 : 0);
  }
  return lanes.length > limit ? { done: false, next: place, at } : { done: true, at };
}

interface ExpireLane {
  webhookId: string;
  /** When the oldest waiting delivery was created. */
  oldestAt: number | null;
  isActive: boolean;
}

// The lane of the place, and the next lanes of the team with waiting deliveries, with one index seek for each.
const LANES_BEHIND = `
  with recursive waiting_lane (webhook_id) as (
    select $2::text collate "C"
    union all
    select (select d.webhook_id from delivery d /* use delivery_order */
            where d.team_id = $1 and d.state = 'waiting' and d.event_sequence > 0
              and d.webhook_id > waiting_lane.webhook_id
            order by d.webhook_id, d.class, d.event_sequence, d.id limit 1)
    from waiting_lane where waiting_lane.webhook_id is not null
  )
  select waiting_lane.webhook_id as "webhookId",
    (select old.created_at from delivery old /* use delivery_history */
     where old.team_id = $1 and old.webhook_id = waiting_lane.webhook_id and (old.state || '') = 'waiting'
     order by old.created_at, old.id limit 1) as "oldestAt",
    coalesce(
      (select webhook.state = 'active' from webhook
       where webhook.team_id = $1 and webhook.id = waiting_lane.webhook_id), false) as "isActive"
  from waiting_lane where waiting_lane.webhook_id is not null limit $3`;

function waitingSince(
  tx: Tx,
  { teamId, place, before, limit }: { teamId: string; place: ExpirePlace; before: number; limit: number },
): Promise<{ id: string; createdAt: number; attempt: number }[]> {
  return tx.db.all<{ id: string; createdAt: number; attempt: number }>`
    select id, created_at as "createdAt", attempt from delivery /* use delivery_history */
    where team_id = ${teamId} and webhook_id = ${place.webhookId} and (state || '') = 'waiting'
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

/**
 * Deletes attempts of a team that are older than `attemptsMs`, and events and finished replays older than `eventsMs`;
 * events are deleted with all their deliveries and decisions. Events with a waiting delivery are kept, and so is the
 * newest event, and every event since the first one that a rule still needs: for a pending decision, or for the message
 * about a record whose cooldown ends.
 * Deletes about `limit` rows of each table per call; call with `after: next` until `done`. `next` is the sequence of the
 * last event that was visited. `at` is when the oldest event or attempt that is left may be deleted.
 */
export async function prune(
  tx: Tx,
  input: { teamId: string; attemptsMs: number; eventsMs: number; limit: number; after?: number | undefined },
): Promise<{ done: boolean; next?: number; at: number | null }> {
  const { teamId, attemptsMs, eventsMs, limit } = input;
  const next = await pruneEvents(tx, input);
  const [attempts] = await Promise.all([
    tx.db.run(OLD_ATTEMPTS, teamId, tx.now - attemptsMs, limit),
    tx.db.run(OLD_REPLAYS, teamId, tx.now - eventsMs, limit),
  ]);
  if (next !== undefined || attempts >= limit) {
    return { done: false, next: next ?? Number.MAX_SAFE_INTEGER, at: null };
  }
  const [event, attempt] = await Promise.all([
    tx.db.get<{ at: number }>`
      select created_at as at from event where team_id = ${teamId} order by sequence limit 1`,
    tx.db.get<{ at: number }>`
      select started_at as at from attempt /* use attempt_started */
      where team_id = ${teamId} order by started_at limit 1`,
  ]);
  return {
    done: true,
    at: earlier(event && event.at + eventsMs + 1, attempt && attempt.at + attemptsMs + 1),
  };
}

const OLD_ATTEMPTS = deletion({
  table: 'attempt',
  key: 'team_id, delivery_id, number',
  first: 'where team_id = $1 and started_at < $2 order by started_at limit $3',
  index: 'attempt_started',
});
const OLD_REPLAYS = deletion({
  table: 'replay',
  key: 'team_id, id',
  first: `where team_id = $1 and created_at < $2 and state = 'done' order by id limit $3`,
});

/**
 * Deletes old events after the sequence `after`, up to `limit` events and deliveries. Returns the sequence after which
 * to continue; undefined if no old events are left.
 */
async function pruneEvents(
  tx: Tx,
  {
    teamId,
    eventsMs,
    limit,
    after = 0,
  }: { teamId: string; eventsMs: number; limit: number; after?: number | undefined },
): Promise<number | undefined> {
  const newest = await tx.db.get<{ sequence: number }>`
    select sequence from event where team_id = ${teamId} order by sequence desc limit 1`;
  if (newest === undefined) return undefined;
  const [pendingAt, endAt] = await Promise.all([oldestPending(tx, { teamId }), firstEnd(tx, { teamId })]);
  const neededAt = earlier(pendingAt, endAt === null ? null : endAt - MAX_COOLDOWN_MS);
  const before = Math.min(tx.now - eventsMs, neededAt ?? Number.POSITIVE_INFINITY);
  const pruned = await pruneTeam(tx, { teamId, lastSequence: newest.sequence, after, before, limit });
  return pruned.done ? undefined : pruned.sequence;
}

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
): Promise<{ done: boolean; sequence: number }> {
  const { teamId, lastSequence, after, before, limit } = team;
  const events = await tx.db.all<{ sequence: number; createdAt: number }>`
    select sequence, created_at as "createdAt" from event
    where team_id = ${teamId} and sequence > ${after} order by sequence limit ${limit}`;
  const places = events.map((event) => mayGo(tx, { ...event, lastSequence }, before));
  const end = places.indexOf('stays');
  const old = events
    .filter((_, n) => places[n] === 'goes' && (end === -1 || n < end))
    .map(({ sequence }) => sequence);
  // The first events alone may have more deliveries or decisions than one call deletes. Later events are then left for
  // the next call.
  const full = await Promise.all([
    tx.db.get<{ sequence: number }>`
      select event_sequence as sequence from delivery /* use delivery_event */
      where team_id = ${teamId} and event_sequence = any(${old}::bigint[])
      order by event_sequence, id limit 1 offset ${limit}`,
    tx.db.get<{ sequence: number }>`
      select event_sequence as sequence from decision
      where team_id = ${teamId} and event_sequence = any(${old}::bigint[])
      order by event_sequence, webhook_id limit 1 offset ${limit}`,
  ]);
  const [enough] = full
    .filter((one) => one !== undefined)
    .sort((one, other) => one.sequence - other.sequence);
  const first = enough === undefined ? old : old.filter((sequence) => sequence <= enough.sequence);
  const firstLeft = await deleteEvents(tx, { teamId, sequences: first, limit });
  if (firstLeft !== undefined) return { done: false, sequence: firstLeft - 1 };
  if (enough !== undefined) return { done: false, sequence: enough.sequence };
  const done = end !== -1 || events.length < limit;
  return { done, sequence: events.at(-1)?.sequence ?? after };
}

/**
 * Deletes up to `limit` deliveries, and the events that then have no deliveries. Returns the first event that still has
 * some.
 */
async function deleteEvents(
  tx: Tx,
  { teamId, sequences, limit }: { teamId: string; sequences: readonly number[]; limit: number },
): Promise<number | undefined> {
  if (sequences.length === 0) return undefined;
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
    tx.db.run`delete from decision where team_id = ${teamId} and event_sequence = any(${emptied}::bigint[])`,
    tx.db.run`delete from event where team_id = ${teamId} and sequence = any(${emptied}::bigint[])`,
  ]);
  return firstLeft;
}
