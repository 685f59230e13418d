/**
 * Replays: events that are sent again. What still waits for an event is made due; else it is sent in a new delivery.
 * `replay-steps.ts` carries out replays of a selection.
 */
import { type Attempt, DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { newId } from '../../std/id.ts';
import { chooseReplay, firstWaiting, type Sibling } from '../replay-choice.ts';
import { type ReplayRow, toReplay } from '../replay-row.ts';
import { touchLane } from '../touched.ts';
import type {
  DeliveryOperations,
  LaneName,
  Replay,
  ReplayedDelivery,
  SentAgain,
} from '../webhook-operations.ts';
import { byAge, type HistoryCursor } from './deliveries.ts';
import { once } from './idempotency.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof DeliveryOperations> = Parameters<DeliveryOperations[Name]>[0];
type Result<Name extends keyof DeliveryOperations> = Awaited<ReturnType<DeliveryOperations[Name]>>;

export function replay(tx: Tx, input: Input<'replay'>): SentAgain[] | undefined {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

function again(tx: Tx, { teamId, webhookId, ids }: Input<'replay'>): SentAgain[] | undefined {
  const originals = ids.flatMap((id) =>
    tx.db.all<{ webhookId: string; sequence: number }>(
      `select delivery.webhook_id as webhookId, delivery.event_sequence as sequence
       from delivery
       join webhook on webhook.team_id = delivery.team_id and webhook.id = delivery.webhook_id
       where delivery.team_id = ? and delivery.id = ? and webhook.state <> 'deleted'`,
      teamId,
      id,
    ),
  );
  const all = originals.filter((original) => webhookId === undefined || original.webhookId === webhookId);
  if (all.length < ids.length) return undefined;
  const sent: SentAgain[] = [];
  for (const one of all) {
    const made = sendNow(tx, { teamId, webhookId: one.webhookId }, one.sequence);
    // The second of one event finds what the first has made.
    sent.push(sent.find(({ id }) => id === made.id) ?? made);
  }
  return sent;
}

function sendNow(tx: Tx, lane: LaneName, sequence: number): SentAgain {
  const waiting = firstWaiting(siblingsOf(tx, lane, sequence));
  if (waiting !== undefined) makeDueUpTo(tx, lane, { id: waiting.id, sequence });
  const id = waiting?.id ?? addReplayed(tx, lane, { sequence, dueAt: tx.now, replayId: null });
  ask(tx, lane, id);
  return { id, isNew: waiting === undefined, attempt: waiting?.attempt ?? 0 };
}

/** Makes a delivery due now, and of an ordered webhook all before it, because those are sent first. */
function makeDueUpTo(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  { id, sequence }: { id: string; sequence: number },
): void {
  tx.db.run(
    `update delivery set next_at = ?1 where team_id = ?2 and state = 'waiting' and next_at > ?1 and (
       id = ?3 or id in (
         select earlier.id from webhook
         cross join delivery earlier indexed by delivery_order
           on earlier.team_id = ?2 and earlier.webhook_id = ?4 and earlier.state = 'waiting'
         where webhook.team_id = ?2 and webhook.id = ?4 and json_extract(webhook.settings, '$.ordered')
           and earlier.event_sequence < ?5))`,
    tx.now,
    teamId,
    id,
    webhookId,
    sequence,
  );
}

/** Notes that somebody wants a webhook to be sent something at once, even if it rests. */
export function ask(tx: Tx, { teamId, webhookId }: LaneName, deliveryId: string): void {
  tx.db.run(
    `update webhook set asked_at = ?1, asked_id = ?2, breaker = json_set(breaker, '$.until', ?1)
     where team_id = ?3 and id = ?4`,
    tx.now,
    deliveryId,
    teamId,
    webhookId,
  );
  touchLane(tx, teamId, webhookId);
}

export function startReplay(tx: Tx, input: Input<'startReplay'>): Replay | undefined {
  const { teamId, webhookId: target, idempotencyKey = null } = input;
  const call = { teamId, operation: 'deliveries.startReplay', target, idempotencyKey } as const;
  const id = once(tx, call, () => begin(tx, input)?.id);
  return id === undefined ? undefined : getReplay(tx, { teamId, id });
}

function begin(tx: Tx, input: Input<'startReplay'>): Replay | undefined {
  const { teamId, webhookId, states, since = 0, until = tx.now } = input;
  const webhook = tx.db.get(
    `select 1 from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    webhookId,
  );
  if (webhook === undefined) return undefined;
  const row = tx.db.get<ReplayRow>(
    `insert into replay (team_id, id, webhook_id, states, since, until, state, created_at)
     values (?, ?, ?, ?, ?, ?, 'running', ?) returning *`,
    teamId,
    newId('rpl', tx.now),
    webhookId,
    JSON.stringify(DELIVERY_STATES.filter((state) => states.includes(state))),
    since,
    // Else it would select its own deliveries, for ever.
    Math.min(until, tx.now),
    tx.now,
  ) as ReplayRow;
  // The lane of an ordered webhook stops until everything is in its place.
  touchLane(tx, teamId, webhookId);
  return toReplay(row);
}

interface ReplayedRow extends Omit<ReplayedDelivery, 'last'> {
  outcome: Attempt['outcome'] | null;
  status: number | null;
  error: string | null;
  at: number;
}

export function getReplay(view: View, { teamId, id }: Input<'getReplay'>): Replay | undefined {
  const row = view.db.get<ReplayRow>('select * from replay where team_id = ? and id = ?', teamId, id);
  return row && toReplay(row);
}

export function replayed(view: View, { teamId, id, after, limit }: Input<'replayed'>): ReplayedDelivery[] {
  return view.db
    .all<ReplayedRow>(
      `select delivery.event_sequence as sequence, delivery.state,
              attempt.outcome, attempt.status, attempt.error, attempt.started_at as at
       from delivery indexed by delivery_replay
       left join attempt on attempt.team_id = delivery.team_id and attempt.delivery_id = delivery.id
                        and attempt.number = delivery.attempt
       where delivery.team_id = ? and delivery.replay_id = ? and delivery.event_sequence > ?
       order by delivery.event_sequence limit ?`,
      teamId,
      id,
      after,
      limit,
    )
    .map(({ outcome, status, error, at, ...delivery }) => ({
      ...delivery,
      last: outcome === null ? null : { outcome, status, error, at },
    }));
}

export function replayable(view: View, input: Input<'replayable'>): Result<'replayable'> {
  const { teamId, webhookId, states, since = 0, until = view.now, limit } = input;
  const after = input.after ?? startOf(since);
  const selected = select(view, { teamId, webhookId, states, until, after, limit });
  const found = selected.filter(
    (one) =>
      chooseReplay(one, siblingsOf(view, { teamId, webhookId }, one.sequence), { states, replayId: null }) !==
      null,
  );
  const last = selected.at(-1);
  return {
    found: found.map(({ sequence, state }) => ({ sequence, state })),
    next: last === undefined || selected.length < limit ? null : { createdAt: last.createdAt, id: last.id },
  };
}

/** The cursor before everything of a period. */
export function startOf(since: number): HistoryCursor {
  return { createdAt: since - 1, id: '\uffff' };
}

/** A delivery that a replay selects. */
export type Selected = Sibling & { sequence: number };

const FORWARDS = `
  select created_at as createdAt, id, event_sequence as sequence, state, replay_id as replayId
  from delivery indexed by delivery_history
  where team_id = ? and webhook_id = ? and state = ? and created_at <= ? and (created_at, id) > (?, ?)
  order by created_at, id limit ?`;

/** The next deliveries of a selection, oldest first. */
export function select(
  view: View,
  input: LaneName & { states: readonly DeliveryState[]; until: number; after: HistoryCursor; limit: number },
): Selected[] {
  const { teamId, webhookId, states, until, after, limit } = input;
  return states
    .flatMap((state) =>
      view.db.all<Selected>(FORWARDS, teamId, webhookId, state, until, after.createdAt, after.id, limit),
    )
    .sort(byAge)
    .slice(0, limit);
}

/** All deliveries of an event to a webhook. */
export function siblingsOf(
  view: View,
  { teamId, webhookId }: LaneName,
  sequence: number,
): (Sibling & { attempt: number })[] {
  return view.db.all<Sibling & { attempt: number }>(
    `select id, state, created_at as createdAt, replay_id as replayId, attempt
     from delivery indexed by delivery_event
     where team_id = ? and event_sequence = ? and webhook_id = ?`,
    teamId,
    sequence,
    webhookId,
  );
}

/** Makes a new delivery of an event, behind all others of its webhook; returns its id. */
export function addReplayed(
  tx: Tx,
  { teamId, webhookId }: LaneName,
  { sequence, dueAt, replayId }: { sequence: number; dueAt: number; replayId: string | null },
): string {
  const id = newId('dlv', tx.now);
  tx.db.run(
    `insert into delivery
       (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin, class, replay_id)
     values (?, ?, ?, ?, 'waiting', ?, ?, 'replay', 2, ?)`,
    teamId,
    id,
    webhookId,
    sequence,
    dueAt,
    tx.now,
    replayId,
  );
  touchLane(tx, teamId, webhookId);
  return id;
}
