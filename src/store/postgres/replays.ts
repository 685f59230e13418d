/**
 * Replays: events are sent again, as new deliveries behind all others of their webhook.
 *
 * A replay of a selection goes through the history of its webhook. Its row holds the cursor, which moves in the
 * transaction that makes the deliveries, so that a crash between two steps costs nothing. The index `delivery_replay`
 * ensures that each event is replayed once, a lock on the row that no two nodes take the same step.
 */

import { DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { newId } from '../../std/id.ts';
import type { IdempotencyKey } from '../idempotent-call.ts';
import { type ReplayRow, toReplay } from '../replay-row.ts';
import { touchLane } from '../touched.ts';
import type { DeliveryFilter, Replay } from '../webhook-operations.ts';
import type { Place } from './deliveries.ts';
import { once } from './idempotency.ts';
import type { Tx, View } from './transaction.ts';

/** How many webhooks with replays one step looks at; the next step goes on behind them. */
const MAX_WEBHOOKS = 25;

export async function replay(
  tx: Tx,
  input: { teamId: string; webhookId?: string; ids: readonly string[]; idempotencyKey?: IdempotencyKey },
): Promise<string[] | undefined> {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

async function again(
  tx: Tx,
  { teamId, webhookId, ids }: Parameters<typeof replay>[1],
): Promise<string[] | undefined> {
  const originals = await tx.db.all<{ webhookId: string; sequence: number }>(
    // The events are locked, so that none is deleted for its age before its new delivery waits.
    `select delivery.webhook_id as "webhookId", delivery.event_sequence as sequence
     from unnest($2::text[]) with ordinality as asked (id, place)
     join delivery on delivery.team_id = $1 and delivery.id = asked.id
     join webhook on webhook.team_id = $1 and webhook.id = delivery.webhook_id
     join event on event.team_id = $1 and event.sequence = delivery.event_sequence
     where webhook.state <> 'deleted' and webhook.id = coalesce($3, webhook.id)
     order by asked.place
     for key share of event`,
    teamId,
    ids,
    webhookId ?? null,
  );
  if (originals.length < ids.length) return undefined;
  return (await addReplayed(tx, { teamId, replayId: null, originals })).ids;
}

export async function startReplay(
  tx: Tx,
  input: DeliveryFilter & { states: readonly DeliveryState[]; idempotencyKey?: IdempotencyKey },
): Promise<Replay | undefined> {
  const { teamId, webhookId: target, idempotencyKey = null } = input;
  const call = { teamId, operation: 'deliveries.startReplay', target, idempotencyKey } as const;
  const id = await once(tx, call, async () => (await begin(tx, input))?.id);
  return id === undefined ? undefined : getReplay(tx, { teamId, id });
}

async function begin(tx: Tx, input: Parameters<typeof startReplay>[1]): Promise<Replay | undefined> {
  const { teamId, webhookId, states, since = 0, until = tx.now } = input;
  const row = await tx.db.get<ReplayRow>(
    `insert into replay (team_id, id, webhook_id, states, since, until, state, created_at)
     select team_id, $3, id, $4, $5, $6, 'running', $7
     from webhook where team_id = $1 and id = $2 and state <> 'deleted'
     returning *`,
    teamId,
    webhookId,
    newId('rpl', tx.now),
    JSON.stringify(DELIVERY_STATES.filter((state) => states.includes(state))),
    since,
    // Otherwise it would select its own deliveries, without end.
    Math.min(until, tx.now),
    tx.now,
  );
  return row && toReplay(row);
}

export async function getReplay(
  view: View,
  { teamId, id }: { teamId: string; id: string },
): Promise<Replay | undefined> {
  const row = await view.db.get<ReplayRow>('select * from replay where team_id = $1 and id = $2', teamId, id);
  return row && toReplay(row);
}

/** The cursor of the steps: a webhook, and whether this round has done anything yet. */
export interface ReplayPlace {
  teamId: string;
  webhookId: string;
  moved: boolean;
}

/** Before the first. */
export const REPLAY_START: ReplayPlace = { teamId: '', webhookId: '', moved: false };

// The oldest replay of each webhook; the others follow when it is done.
const RUNNING = `
  select replay.team_id as "teamId", replay.id, replay.webhook_id as "webhookId",
         (select count(*) from (
            select 1 from delivery
            where team_id = replay.team_id and webhook_id = replay.webhook_id and state = 'waiting' and class = 2
              and class > 0
            order by next_at, id limit $4) replayed) as waiting
  from replay
  where state = 'running' and (team_id, webhook_id) > ($1, $2) and id = (
    select first.id from replay first
    where first.team_id = replay.team_id and first.webhook_id = replay.webhook_id and first.state = 'running'
    order by first.created_at, first.id limit 1)
  order by team_id, webhook_id limit $3`;

/** `next` is null at the end of a round through the webhooks; it is done when a whole round found nothing to do. */
export async function stepReplays(
  tx: Tx,
  { limit, waiting, after }: { limit: number; waiting: number; after: ReplayPlace },
): Promise<{ done: boolean; next: ReplayPlace | null }> {
  let room = limit;
  let place = after;
  const running = await tx.db.all<{ teamId: string; id: string; webhookId: string; waiting: number }>(
    RUNNING,
    after.teamId,
    after.webhookId,
    MAX_WEBHOOKS,
    waiting,
  );
  for (const one of running) {
    const free = Math.min(room, waiting - one.waiting);
    if (free > 0) room -= await step(tx, one, free);
    place = { teamId: one.teamId, webhookId: one.webhookId, moved: after.moved || room < limit };
    if (room <= 0) break;
  }
  if (room <= 0 || running.length === MAX_WEBHOOKS) return { done: false, next: place };
  return { done: !place.moved, next: null };
}

// A failed delivery is skipped when a later delivery of the same event has arrived or still waits.
const FORWARDS = `
  select found.created_at as "createdAt", found.id, found.event_sequence as sequence,
    found.state in ('dead', 'canceled') and (
      select true from delivery since
      where since.team_id = $1 and since.event_sequence = found.event_sequence and since.webhook_id = $2
        and since.state in ('delivered', 'waiting') and since.created_at >= found.created_at
        and since.id <> found.id
      limit 1) is not null as "madeGood"
  from (
    select page.* from unnest($3::text[]) as wanted (state)
    cross join lateral (
      select created_at, id, event_sequence, state from delivery
      where team_id = $1 and webhook_id = $2 and (state || '') = wanted.state
        and created_at <= $4 and (created_at, id) > ($5, $6)
      order by created_at, id limit $7
    ) page
    order by page.created_at, page.id limit $7
  ) found
  order by found.created_at, found.id`;

/** Moves a replay on by up to `limit` deliveries; returns how many (at least 1), or 0 if another node does it. */
async function step(
  tx: Tx,
  { teamId, id: replayId, webhookId }: { teamId: string; id: string; webhookId: string },
  limit: number,
): Promise<number> {
  const [row, webhook] = await Promise.all([
    tx.db.get<ReplayRow>(
      `select * from replay where team_id = $1 and id = $2 and state = 'running' for update skip locked`,
      teamId,
      replayId,
    ),
    tx.db.get(
      `select 1 from webhook where team_id = $1 and id = $2 and state <> 'deleted'`,
      teamId,
      webhookId,
    ),
  ]);
  if (row === undefined) return 0;
  const after: Place = { createdAt: row.after_at, id: row.after_id };
  // Start behind every id of the millisecond before.
  if (after.createdAt < row.since) Object.assign(after, { createdAt: row.since - 1, id: '\uffff' });
  const selected = await tx.db.all<Place & { sequence: number; madeGood: boolean }>(
    FORWARDS,
    teamId,
    webhookId,
    webhook === undefined ? [] : JSON.parse(row.states),
    row.until,
    after.createdAt,
    after.id,
    limit,
  );
  const originals = selected
    .filter(({ madeGood }) => !madeGood)
    .map(({ sequence }) => ({ webhookId, sequence }));
  const { made } = await addReplayed(tx, { teamId, replayId, originals });
  const last = selected.at(-1) ?? after;
  await tx.db.run(
    'update replay set after_at = $3, after_id = $4, made = made + $5, state = $6 where team_id = $1 and id = $2',
    teamId,
    replayId,
    last.createdAt,
    last.id,
    made,
    selected.length < limit ? 'done' : 'running',
  );
  return Math.max(1, selected.length);
}

/**
 * Makes new deliveries, except those that this replay has made already, and those whose events were deleted meanwhile
 * for their age. The events are locked, so that none is deleted before its new delivery waits.
 */
async function addReplayed(
  tx: Tx,
  input: {
    teamId: string;
    replayId: string | null;
    originals: readonly { webhookId: string; sequence: number }[];
  },
): Promise<{ ids: string[]; made: number }> {
  const { teamId, replayId, originals } = input;
  if (originals.length === 0) return { ids: [], made: 0 };
  const ids = originals.map(() => newId('dlv', tx.now));
  const made = await tx.db.run(
    `with event_there as materialized (
       select sequence from event where team_id = $1 and sequence = any($4::bigint[])
       order by sequence for key share
     )
     insert into delivery
       (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin, class, replay_id)
     select $1, given.id, given.webhook_id, given.sequence, 'waiting', $5, $5, 'replay', 2, $6
     from unnest($2::text[], $3::text[], $4::bigint[]) as given (id, webhook_id, sequence)
     join event_there on event_there.sequence = given.sequence
     on conflict do nothing`,
    teamId,
    ids,
    originals.map(({ webhookId }) => webhookId),
    originals.map(({ sequence }) => sequence),
    tx.now,
    replayId,
  );
  for (const { webhookId } of originals) touchLane(tx, teamId, webhookId);
  return { ids, made };
}
