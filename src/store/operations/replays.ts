/**
 * Replays: events that are sent again. What still waits for an event is made due; else it is sent in a new delivery.
 * `replay-steps.ts` carries out replays of a selection.
 */

import { type Attempt, DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { newId } from '../../std/id.ts';
import { chooseReplay, firstWaiting, type Sibling } from '../replay-choice.ts';
import { type ReplayRow, toReplay } from '../replay-row.ts';
import type { Tx, View } from '../sql.ts';
import { touchLane } from '../touched.ts';
import type {
  DeliveryOperations,
  LaneName,
  Replay,
  ReplayedDelivery,
  SentAgain,
} from '../webhook-operations.ts';
import type { Place } from './deliveries.ts';
import { once } from './idempotency.ts';

type Input<Name extends keyof DeliveryOperations> = Parameters<DeliveryOperations[Name]>[0];

export async function replay(tx: Tx, input: Input<'replay'>): Promise<SentAgain[] | undefined> {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

async function again(tx: Tx, { teamId, webhookId, ids }: Input<'replay'>): Promise<SentAgain[] | undefined> {
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
  const sent: SentAgain[] = [];
  for (const one of originals) {
    const made = await sendNow(tx, { teamId, webhookId: one.webhookId }, one.sequence);
    // The second of one event finds what the first has made.
    sent.push(sent.find(({ id }) => id === made.id) ?? made);
  }
  return sent;
}

async function sendNow(tx: Tx, lane: LaneName, sequence: number): Promise<SentAgain> {
  await lockWebhook(tx, lane);
  const waiting = firstWaiting(await siblingsOf(tx, lane, [sequence]));
  const id = waiting?.id ?? newId('dlv', tx.now);
  if (waiting !== undefined) await makeDueUpTo(tx, lane, { id, sequence });
  else await addReplayed(tx, lane, { replayId: null, deliveries: [{ id, sequence, dueAt: tx.now }] });
  await ask(tx, lane, id);
  return { id, isNew: waiting === undefined, attempt: waiting?.attempt ?? 0 };
}

/** Two calls at once must not both find that nothing waits for an event. */
export async function lockWebhook(tx: Tx, { teamId, webhookId }: LaneName): Promise<void> {
  await tx.db.get(
    'select 1 from webhook where team_id = $1 and id = $2 for no key update',
    teamId,
    webhookId,
  );
}

/** Makes a delivery due now, and of an ordered webhook all before it, because those are sent first. */
async function makeDueUpTo(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  { id, sequence }: { id: string; sequence: number },
): Promise<void> {
  await tx.db.run(
    `update delivery set next_at = $3 where team_id = $1 and state = 'waiting' and next_at > $3 and id = any(
       array[$4::text] || array(
         select earlier.id from delivery earlier
         where earlier.team_id = $1 and earlier.webhook_id = $2 and earlier.state = 'waiting' and earlier.class > 0
           and earlier.next_at > $3 and earlier.event_sequence < $5
           and (select (settings::json ->> 'ordered')::boolean from webhook where team_id = $1 and id = $2)))`,
    teamId,
    webhookId,
    tx.now,
    id,
    sequence,
  );
}

/** Notes that somebody wants a webhook to be sent something at once, even if it rests. */
export async function ask(tx: Tx, { teamId, webhookId }: LaneName, deliveryId: string): Promise<void> {
  await tx.db.run(
    `update webhook set asked_at = $3, asked_id = $4,
       breaker = jsonb_set(breaker::jsonb, '{until}', to_jsonb($3::bigint))::text
     where team_id = $1 and id = $2`,
    teamId,
    webhookId,
    tx.now,
    deliveryId,
  );
  touchLane(tx, teamId, webhookId);
}

export async function startReplay(tx: Tx, input: Input<'startReplay'>): Promise<Replay | undefined> {
  const { teamId, webhookId: target, idempotencyKey = null } = input;
  const call = { teamId, operation: 'deliveries.startReplay', target, idempotencyKey } as const;
  const id = await once(tx, call, async () => (await begin(tx, input))?.id);
  return id === undefined ? undefined : getReplay(tx, { teamId, id });
}

async function begin(tx: Tx, input: Input<'startReplay'>): Promise<Replay | undefined> {
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
  // The lane of an ordered webhook stops until everything is in its place.
  if (row !== undefined) touchLane(tx, teamId, webhookId);
  return row && toReplay(row);
}

interface ReplayedRow extends Omit<ReplayedDelivery, 'last'> {
  outcome: Attempt['outcome'] | null;
  status: number | null;
  error: string | null;
  at: number;
}

export async function getReplay(view: View, { teamId, id }: Input<'getReplay'>): Promise<Replay | undefined> {
  const row = await view.db.get<ReplayRow>('select * from replay where team_id = $1 and id = $2', teamId, id);
  return row && toReplay(row);
}

export async function replayed(
  view: View,
  { teamId, id, after, limit }: Input<'replayed'>,
): Promise<ReplayedDelivery[]> {
  const rows = await view.db.all<ReplayedRow>(
    `select sent.event_sequence as sequence, sent.state,
            attempt.outcome, attempt.status, attempt.error, attempt.started_at as at
     from (
       select * from delivery
       where team_id = $1 and replay_id = $2 and event_sequence > $3 order by event_sequence limit $4
     ) sent
     left join attempt on attempt.team_id = sent.team_id and attempt.delivery_id = sent.id
                      and attempt.number = sent.attempt
     order by sent.event_sequence`,
    teamId,
    id,
    after,
    limit,
  );
  return rows.map(({ outcome, status, error, at, ...delivery }) => ({
    ...delivery,
    last: outcome === null ? null : { outcome, status, error, at },
  }));
}

export async function replayable(
  view: View,
  input: Input<'replayable'>,
): ReturnType<DeliveryOperations['replayable']> {
  const { teamId, webhookId, states, since = 0, until = view.now, limit } = input;
  const lane = { teamId, webhookId };
  const after = input.after ?? startOf(since);
  const selected = await select(view, { ...lane, states, until, after, limit });
  const siblings = bySequence(
    await siblingsOf(
      view,
      lane,
      selected.map(({ sequence }) => sequence),
    ),
  );
  const found = selected.filter(
    (one) => chooseReplay(one, siblings.get(one.sequence) ?? [], { states, replayId: null }) !== null,
  );
  const last = selected.at(-1);
  return {
    found: found.map(({ sequence, state }) => ({ sequence, state })),
    next: last === undefined || selected.length < limit ? null : { createdAt: last.createdAt, id: last.id },
  };
}

/** The place before everything of a period: behind every id of the millisecond before. */
export function startOf(since: number): Place {
  return { createdAt: since - 1, id: '\uffff' };
}

/** A delivery that a replay selects. */
export type Selected = Sibling & { sequence: number };

const FORWARDS = `
  select page.created_at as "createdAt", page.id, page.event_sequence as sequence, page.state,
         page.replay_id as "replayId"
  from unnest($3::text[]) as wanted (state)
  cross join lateral (
    select created_at, id, event_sequence, state, replay_id from delivery
    where team_id = $1 and webhook_id = $2 and (state || '') = wanted.state
      and created_at <= $4 and (created_at, id) > ($5, $6)
    order by created_at, id limit $7
  ) page
  order by page.created_at, page.id limit $7`;

/** The next deliveries of a selection, oldest first. */
export function select(
  view: View,
  input: LaneName & { states: readonly DeliveryState[]; until: number; after: Place; limit: number },
): Promise<Selected[]> {
  const { teamId, webhookId, states, until, after, limit } = input;
  return view.db.all<Selected>(FORWARDS, teamId, webhookId, states, until, after.createdAt, after.id, limit);
}

/** All deliveries of some events to a webhook. */
export function siblingsOf(
  view: View,
  { teamId, webhookId }: LaneName,
  sequences: readonly number[],
): Promise<(Selected & { attempt: number })[]> {
  return view.db.all<Selected & { attempt: number }>(
    `select delivery.id, delivery.event_sequence as sequence, delivery.state,
            delivery.created_at as "createdAt", delivery.replay_id as "replayId", delivery.attempt
     from (select distinct unnest($3::bigint[]) as sequence) asked
     cross join lateral (
       select * from delivery where team_id = $1 and event_sequence = asked.sequence and webhook_id = $2
       order by event_sequence limit 1000
     ) delivery`,
    teamId,
    webhookId,
    sequences,
  );
}

export function bySequence(deliveries: readonly Selected[]): Map<number, Selected[]> {
  return Map.groupBy(deliveries, ({ sequence }) => sequence);
}

/**
 * Makes new deliveries behind all others of their webhook, except those of events that were deleted meanwhile for their
 * age; returns how many. The events are locked, so that none is deleted before its new delivery waits.
 */
export async function addReplayed(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  input: {
    replayId: string | null;
    deliveries: readonly { id: string; sequence: number; dueAt: number }[];
  },
): Promise<number> {
  const { replayId, deliveries } = input;
  if (deliveries.length === 0) return 0;
  touchLane(tx, teamId, webhookId);
  return tx.db.run(
    `with event_there as materialized (
       select sequence from event where team_id = $1 and sequence = any($4::bigint[])
       order by sequence for key share
     )
     insert into delivery
       (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin, class, replay_id)
     select $1, given.id, $2, given.sequence, 'waiting', given.due_at, $6, 'replay', 2, $7
     from unnest($3::text[], $4::bigint[], $5::bigint[]) as given (id, sequence, due_at)
     join event_there on event_there.sequence = given.sequence
     on conflict do nothing`,
    teamId,
    webhookId,
    deliveries.map(({ id }) => id),
    deliveries.map(({ sequence }) => sequence),
    deliveries.map(({ dueAt }) => dueAt),
    tx.now,
    replayId,
  );
}
