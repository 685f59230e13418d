/**
 * Replays send messages again, with the same body and id. Usually an event is one message; a message about records whose
 * cooldown has ended belongs to the same event as another one. If a delivery of the message is still waiting, that
 * delivery becomes due; otherwise the message is sent in a new delivery. `replay-steps.ts` carries out replays of a selection.
 */

import { DELIVERY_STATES, type DeliveryState } from '../../../model/delivery.ts';
import { newId } from '../../../std/id.ts';
import type { InTeam } from '../../rows.ts';
import { both, forEach, Part } from '../../sql.ts';
import type { LaneName, Tx, View } from '../../transaction.ts';
import { touchLane } from '../agenda.ts';
import { type IdempotencyKey, once } from '../idempotency.ts';
import { IS_ORDERED, OF_WEBHOOK } from '../lanes.ts';
import {
  type DeliveryFilter,
  type DeliverySummary,
  type HistoryPlace,
  type LastAttempt,
  ofStates,
  toSummary,
} from './deliveries.ts';
import { type Narrowing, narrowed } from './search.ts';

/** A replay of selected deliveries, carried out in steps in the background. */
export interface Replay {
  teamId: string;
  id: string;
  webhookId: string;
  states: DeliveryState[];
  since: number;
  until: number;
  /** Number of deliveries sent so far, including waiting deliveries that became due. */
  made: number;
  /** `done` when the whole selection has been visited. Some deliveries of the replay may still be waiting then. */
  state: 'running' | 'done';
  createdAt: number;
}

/** The state of a delivery that a replay has sent. */
export interface ReplayedDelivery {
  sequence: number;
  /** The id of a message of its own; null: that of the event. */
  messageId: string | null;
  state: DeliveryState;
  /** When the next attempt is due; null if the delivery has ended. */
  nextAt: number | null;
  /** The last attempt; null before the first attempt, or if the last attempt was pruned. */
  last: DeliverySummary['last'];
}

/** The delivery that sends an event again. */
export interface SentAgain {
  id: string;
  /** Whether this call created the delivery; false if the delivery was already waiting. */
  isNew: boolean;
  /** Its attempts so far. */
  attempt: number;
}

/**
 * Sends the events of these deliveries again, and returns the deliveries that send them, in the same order. If a
 * delivery of an event is still waiting, it becomes due immediately; otherwise a new delivery is created (origin
 * `replay`). For an ordered webhook, earlier waiting deliveries become due as well.
 *
 * Sends all events or none: returns undefined if a delivery does not exist or does not belong to `webhookId`, or if the
 * webhook of a delivery was removed. An idempotency key is scoped to `webhookId` or, without one, to the ids of the
 * deliveries.
 */
export async function replay(
  tx: Tx,
  input: { teamId: string; webhookId?: string; ids: readonly string[]; idempotencyKey?: IdempotencyKey },
): Promise<SentAgain[] | undefined> {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

async function again(
  tx: Tx,
  { teamId, webhookId, ids }: Parameters<typeof replay>[1],
): Promise<SentAgain[] | undefined> {
  // The query locks the events, so that retention does not delete an event before its new delivery is waiting.
  const originals = await Promise.all(
    ids.map(
      (id) => tx.db.get<Original & { webhookId: string }>`
        select delivery.webhook_id as "webhookId", delivery.id, delivery.event_sequence as sequence,
               delivery.message_id as "messageId"
        from delivery
        join webhook on webhook.team_id = delivery.team_id and webhook.id = delivery.webhook_id
        join event on event.team_id = delivery.team_id and event.sequence = delivery.event_sequence
        where delivery.team_id = ${teamId} and delivery.id = ${id} and webhook.state <> 'deleted'
          and webhook.id = coalesce(${webhookId ?? null}, webhook.id)
        for key share of event`,
    ),
  );
  if (originals.includes(undefined)) return undefined;
  const sent: SentAgain[] = [];
  for (const { webhookId: of, ...original } of originals as (Original & { webhookId: string })[]) {
    const made = await sendNow(tx, { teamId, webhookId: of }, original);
    // If two of the deliveries have the same message, both results are the delivery that was created for the first of
    // them.
    sent.push(sent.find(({ id }) => id === made.id) ?? made);
  }
  return sent;
}

/** A delivery whose message is sent again. */
interface Original extends MessageName {
  id: string;
}

async function sendNow(tx: Tx, lane: LaneName, original: Original): Promise<SentAgain> {
  await lockWebhook(tx, lane);
  const waiting = firstWaiting((await siblingsOf(tx, lane, [original])).of(original));
  const id = waiting?.id ?? newId('dlv', tx.now);
  const { sequence } = original;
  if (waiting !== undefined) await makeDueUpTo(tx, lane, { id, sequence });
  else {
    const deliveries = [{ id, sequence, dueAt: tx.now, originalId: original.id }];
    await addReplayed(tx, lane, { replayId: null, deliveries });
  }
  await ask(tx, lane, id);
  return { id, isNew: waiting === undefined, attempt: waiting?.attempt ?? 0 };
}

/** Locks a webhook, so that two simultaneous calls do not both find that no delivery of an event is waiting. */
export async function lockWebhook(tx: Tx, { teamId, webhookId }: LaneName): Promise<void> {
  await tx.db.get`select 1 from webhook where team_id = ${teamId} and id = ${webhookId} for no key update`;
}

/**
 * Makes a delivery due now. For an ordered webhook, all waiting deliveries before it become due as well, because they
 * must be sent first.
 */
export async function makeDueUpTo(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  { id, sequence }: { id: string; sequence: number },
): Promise<void> {
  const earlier = await tx.db.all<{ id: string }>(EARLIER, teamId, webhookId, sequence, tx.now);
  await tx.db.run`
    update delivery set next_at = ${tx.now}
    where team_id = ${teamId} and state = 'waiting' and next_at > ${tx.now}
      and id = any(${[id, ...earlier.map((one) => one.id)]}::text[])`;
}

const EARLIER = `
  select d.id from webhook cross join delivery d /* use delivery_order */
  where webhook.team_id = $1 and webhook.id = $2 and ${IS_ORDERED}
    and ${OF_WEBHOOK} and d.event_sequence > 0 and d.event_sequence < $3 and d.next_at > $4`;

/**
 * Stores the request to send a delivery immediately. The request is granted even while the webhook's circuit breaker is
 * open.
 */
export async function ask(tx: Tx, { teamId, webhookId }: LaneName, deliveryId: string): Promise<void> {
  await tx.db.run(ASK, teamId, webhookId, tx.now, deliveryId);
  touchLane(tx, teamId, webhookId);
}

const ASK = both(
  (pick) => `
  update webhook set asked_at = $3, asked_id = $4, breaker = ${pick({
    sqlite: `json_set(breaker, '$.until', $3)`,
    postgres: `jsonb_set(breaker::jsonb, '{until}', to_jsonb($3::bigint))::text`,
  })}
  where team_id = $1 and id = $2`,
);

/**
 * Starts a replay of a selection. Each event is sent once, even if several of its deliveries are selected (see
 * `chooseReplay`). While the replay is running, an ordered webhook receives nothing, so that all events arrive in
 * order.
 */
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
  const chosen = JSON.stringify(DELIVERY_STATES.filter((state) => states.includes(state)));
  // The period ends now at the latest. Otherwise the replay would select its own deliveries and never end.
  const row = await tx.db.get<ReplayRow>`
    insert into replay (team_id, id, webhook_id, states, since, until, state, created_at)
    select team_id, ${newId('rpl', tx.now)}, id, ${chosen}, ${since}, ${Math.min(until, tx.now)}, 'running', ${tx.now}
    from webhook where team_id = ${teamId} and id = ${webhookId} and state <> 'deleted'
    returning ${REPLAY}`;
  // This makes the sender notice that the lane of an ordered webhook stops until all deliveries are in place.
  if (row !== undefined) touchLane(tx, teamId, webhookId);
  return row && toReplay(row);
}

export const REPLAY = new Part(
  'team_id as "teamId", id, webhook_id as "webhookId", states, since, until, made, state, created_at as "createdAt"',
);

/** `states` is JSON. */
export type ReplayRow = Omit<Replay, 'states'> & { states: string };

export function toReplay({ states, ...row }: ReplayRow): Replay {
  return { ...row, states: JSON.parse(states) };
}

export async function getReplay(view: View, { teamId, id }: InTeam): Promise<Replay | undefined> {
  const row = await view.db
    .get<ReplayRow>`select ${REPLAY} from replay where team_id = ${teamId} and id = ${id}`;
  return row && toReplay(row);
}

/**
 * Lists the deliveries that a replay has sent, in the order of their events, after the sequence `after` or, if
 * `afterMessageId` is given, after that message of that event. Deliveries that a later replay has sent again are left
 * out.
 */
export async function replayed(
  view: View,
  {
    teamId,
    id,
    after,
    afterMessageId,
    limit,
  }: { teamId: string; id: string; after: number; afterMessageId?: string | null; limit: number },
): Promise<ReplayedDelivery[]> {
  const afterMessage = afterMessageId === undefined ? AFTER_ALL : (afterMessageId ?? '');
  const rows = await view.db.all<Omit<ReplayedDelivery, 'last'> & LastAttempt>`
    select sent.event_sequence as sequence, sent.message_id as "messageId", sent.state, sent.next_at as "nextAt",
           attempt.outcome, attempt.status, attempt.error, attempt.started_at as at
    from (
      select * from delivery
      where team_id = ${teamId} and replay_id = ${id}
        and (event_sequence, coalesce(message_id, '')) > (${after}, ${afterMessage})
      order by event_sequence, coalesce(message_id, '') limit ${limit}
    ) sent
    left join attempt on attempt.team_id = sent.team_id and attempt.delivery_id = sent.id
                     and attempt.number = sent.attempt
    order by sent.event_sequence, coalesce(sent.message_id, '')`;
  return rows.map((row) => toSummary(row));
}

/** Sorts after every id of a message. */
const AFTER_ALL = '\uffff';

/**
 * Returns a page of the messages that a replay of this selection would send now, with the states of the selected
 * deliveries. A message may occur again on a later page. `next` is null after the last page.
 */
export async function replayable(
  view: View,
  input: DeliveryFilter & {
    states: readonly DeliveryState[];
    narrowing?: Narrowing;
    after?: HistoryPlace;
    limit: number;
  },
): Promise<{ found: (MessageName & { state: DeliveryState })[]; next: HistoryPlace | null }> {
  const { teamId, webhookId, states, since = 0, until = view.now, narrowing = {}, limit } = input;
  const lane = { teamId, webhookId };
  const after = input.after ?? startOf(since);
  const selected = await select(view, { ...lane, states, until, after, limit });
  const matching = await narrowed(view, teamId, narrowing, selected);
  const siblings = await siblingsOf(view, lane, matching);
  const found = matching.filter(
    (one) => chooseReplay(one, siblings.of(one), { states, replayId: null }) !== null,
  );
  const last = selected.at(-1);
  return {
    found: found.map(({ sequence, messageId, state }) => ({ sequence, messageId, state })),
    next: last === undefined || selected.length < limit ? null : { createdAt: last.createdAt, id: last.id },
  };
}

/** Returns the position just before a period, which is after every id of the previous millisecond. */
export function startOf(since: number): HistoryPlace {
  return { createdAt: since - 1, id: '\uffff' };
}

/** A delivery that a replay selects. */
export type Selected = Sibling & MessageName;

/** Names a message to a webhook: an event, or a message of its own about an event. */
export interface MessageName {
  sequence: number;
  messageId: string | null;
}

/** A key for maps. */
export function keyOfMessage({ sequence, messageId }: MessageName): string {
  return `${sequence} ${messageId ?? ''}`;
}

/** The next deliveries of a selection, oldest first. */
export async function select(
  view: View,
  input: LaneName & { states: readonly DeliveryState[]; until: number; after: HistoryPlace; limit: number },
): Promise<Selected[]> {
  const { teamId, webhookId, states, until, after, limit } = input;
  if (states.length === 0) return [];
  const forwards = ofStates(states, {
    columns: `created_at as "createdAt", id, event_sequence as sequence, state, replay_id as "replayId", message_id as "messageId"`,
    where: 'created_at <= $3 and (created_at, id) > ($4, $5)',
    order: 'asc',
    limit: '$6',
  });
  return view.db.all<Selected>(forwards, teamId, webhookId, until, after.createdAt, after.id, limit);
}

/** Returns all deliveries of these messages to a webhook, by message. */
export async function siblingsOf(
  view: View,
  { teamId, webhookId }: LaneName,
  of: readonly MessageName[],
): Promise<{ of(message: MessageName): readonly (Selected & { attempt: number })[] }> {
  const sequences = [...new Set(of.map(({ sequence }) => sequence))];
  const siblings = await view.db.all<Selected & { attempt: number }>(SIBLINGS, teamId, webhookId, sequences);
  const byMessage = Map.groupBy(siblings, keyOfMessage);
  return { of: (message) => byMessage.get(keyOfMessage(message)) ?? [] };
}

// PostgreSQL uses a lateral subquery, so that the planner cannot choose to read the whole history of the webhook.
const SIBLINGS = both(
  (pick) => `
  select delivery.id, delivery.event_sequence as sequence, delivery.state,
         delivery.created_at as "createdAt", delivery.replay_id as "replayId", delivery.attempt,
         delivery.message_id as "messageId"
  from unnest($3::bigint[]) as wanted (sequence)
  cross join ${pick({
    sqlite: `delivery indexed by delivery_event
    where delivery.team_id = $1 and delivery.event_sequence = wanted.sequence and delivery.webhook_id = $2`,
    postgres: `lateral (
    select * from delivery where team_id = $1 and event_sequence = wanted.sequence and webhook_id = $2
    order by event_sequence limit 1000
  ) delivery`,
  })}`,
);

/**
 * Creates deliveries that are sent after all others of their webhook. Each has the body and the id that its original
 * delivery has sent. Events that retention has deleted in the meantime
 * get none. Returns the number of created deliveries. The events are locked, so that none is deleted before its new
 * delivery is waiting.
 */
export async function addReplayed(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  input: { replayId: string | null; deliveries: readonly Again[] },
): Promise<number> {
  const { replayId, deliveries } = input;
  if (deliveries.length === 0) return 0;
  touchLane(tx, teamId, webhookId);
  const there = await tx.db.all<{ sequence: number }>`
    select sequence from event where team_id = ${teamId}
      and sequence = any(${deliveries.map(({ sequence }) => sequence)}::bigint[])
    order by sequence for key share`;
  const sequences = new Set(there.map(({ sequence }) => sequence));
  const rows = deliveries
    .filter(({ sequence }) => sequences.has(sequence))
    .map(({ id, dueAt, originalId }) => [id, dueAt, originalId]);
  return (await forEach(tx.db, SEND_AGAIN, [teamId, webhookId, tx.now, replayId], rows)).length;
}

/** A new delivery, and the delivery whose message it sends again. */
interface Again {
  id: string;
  sequence: number;
  dueAt: number;
  originalId: string;
}

const AGAIN_INTO = `
  insert into delivery
    (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin, class, replay_id, body, message_id)`;
const SEND_AGAIN = {
  sqlite: `${AGAIN_INTO}
    select $1, $5, $2, event_sequence, 'waiting', $6, $3, 'replay', 2, $4, body, message_id
    from delivery where team_id = $1 and id = $7 returning id`,
  postgres: `${AGAIN_INTO}
    select $1, given.id, $2, original.event_sequence, 'waiting', given.due_at, $3, 'replay', 2, $4, original.body,
           original.message_id
    from unnest($5::text[], $6::bigint[], $7::text[]) as given (id, due_at, original_id)
    cross join lateral (
      select * from delivery where team_id = $1 and delivery.id = given.original_id limit 1
    ) original returning id`,
};

/** One of the deliveries of the same message to the same webhook. */
export interface Sibling {
  id: string;
  state: DeliveryState;
  createdAt: number;
  replayId: string | null;
}

/**
 * What a replay does with a message: send it in a new delivery (`copy`), make the waiting delivery due now (`due`), or
 * skip the message (null).
 */
type Choice = { copy: true } | { due: string } | null;

/**
 * Decides what a replay does with a selected delivery's message. A message with a waiting delivery gets no second
 * delivery. A message whose delivery failed is not sent again if it has been delivered since.
 *
 * @param siblings all deliveries of the message to the webhook, including the selected one
 * @param states the states that the replay selects
 * @param replayId null if events are only counted
 */
export function chooseReplay(
  selected: Sibling,
  siblings: readonly Sibling[],
  { states, replayId }: { states: readonly DeliveryState[]; replayId: string | null },
): Choice {
  if (replayId !== null && siblings.some((one) => one.replayId === replayId)) return null;
  const waiting = firstWaiting(siblings);
  if (waiting !== undefined) return states.includes('waiting') ? { due: waiting.id } : null;
  const wasDelivered = siblings.some(
    ({ state, createdAt }) => state === 'delivered' && createdAt >= selected.createdAt,
  );
  return selected.state !== 'delivered' && wasDelivered ? null : { copy: true };
}

/** Returns the oldest waiting delivery, which is the delivery that a replay makes due. */
function firstWaiting<One extends Sibling>(siblings: readonly One[]): One | undefined {
  return siblings
    .filter(({ state }) => state === 'waiting')
    .reduce<One | undefined>(
      (first, one) => (first === undefined || one.createdAt < first.createdAt ? one : first),
      undefined,
    );
}
