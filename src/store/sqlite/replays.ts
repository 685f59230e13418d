/**
 * Replays: events that are sent again, as new deliveries behind all others of their webhook.
 *
 * A replay of a selection goes through the history of its webhook. Its cursor is part of its row and moves in the
 * transaction that creates the deliveries, so that a crash between two steps loses nothing. The unique index
 * `delivery_replay` ensures that each event comes once.
 */
import { DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { newId } from '../../std/id.ts';
import { type ReplayRow, toReplay } from '../replay-row.ts';
import { touchLane } from '../touched.ts';
import type { DeliveryOperations, Replay } from '../webhook-operations.ts';
import { byAge, type HistoryCursor } from './deliveries.ts';
import { once } from './idempotency.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof DeliveryOperations> = Parameters<DeliveryOperations[Name]>[0];

/** How many webhooks' replays one step looks at; the next step continues after them. */
const MAX_WEBHOOKS = 100;

export function replay(tx: Tx, input: Input<'replay'>): string[] | undefined {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

function again(tx: Tx, { teamId, webhookId, ids }: Input<'replay'>): string[] | undefined {
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
  // Never undefined, because without a replay id nothing can conflict.
  return all.map((original) => addReplayed(tx, { ...original, teamId, replayId: null }) as string);
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
  return toReplay(row);
}

export function getReplay(view: View, { teamId, id }: Input<'getReplay'>): Replay | undefined {
  const row = view.db.get<ReplayRow>('select * from replay where team_id = ? and id = ?', teamId, id);
  return row && toReplay(row);
}

/** The last webhook stepped, and whether this round through the webhooks has done anything. */
export interface ReplayCursor {
  teamId: string;
  webhookId: string;
  moved: boolean;
}

export const REPLAY_START: ReplayCursor = { teamId: '', webhookId: '', moved: false };

// The oldest running replay of each webhook: its others follow when that is done.
const RUNNING = `
  select * from replay indexed by replay_running
  where state = 'running' and (team_id, webhook_id) > (?, ?) and id = (
    select first.id from replay first indexed by replay_running
    where first.team_id = replay.team_id and first.webhook_id = replay.webhook_id and first.state = 'running'
    order by first.created_at, first.id limit 1)
  order by team_id, webhook_id limit ?`;

/** `next` is null at the end of a round through the webhooks; `done` when a whole round found nothing to do. */
export function stepReplays(
  tx: Tx,
  { limit, waiting, after }: { limit: number; waiting: number; after: ReplayCursor },
): { done: boolean; next: ReplayCursor | null } {
  let room = limit;
  let place = after;
  const rows = tx.db.all<ReplayRow>(RUNNING, after.teamId, after.webhookId, MAX_WEBHOOKS);
  for (const row of rows) {
    const free = Math.min(room, waiting - replayedWaiting(tx, row, waiting));
    if (free > 0) room -= step(tx, row, free);
    place = { teamId: row.team_id, webhookId: row.webhook_id, moved: after.moved || room < limit };
    if (room <= 0) break;
  }
  if (room <= 0 || rows.length === MAX_WEBHOOKS) return { done: false, next: place };
  return { done: !place.moved, next: null };
}

const REPLAYED_WAITING = `
  select count(*) as count from (
    select 1 from delivery indexed by delivery_due
    where team_id = ? and webhook_id = ? and state = 'waiting' and class = 2 limit ?)`;

function replayedWaiting(tx: Tx, { team_id, webhook_id }: ReplayRow, atMost: number): number {
  return tx.db.get<{ count: number }>(REPLAYED_WAITING, team_id, webhook_id, atMost)?.count ?? 0;
}

const FORWARDS = `
  select created_at as createdAt, id, event_sequence as sequence, state from delivery indexed by delivery_history
  where team_id = ? and webhook_id = ? and state = ? and created_at <= ? and (created_at, id) > (?, ?)
  order by created_at, id limit ?`;

/** Advances a replay by up to `limit` deliveries; returns how many it has read, at least 1. */
function step(tx: Tx, row: ReplayRow, limit: number): number {
  const { team_id: teamId, id: replayId, webhook_id: webhookId } = row;
  const after: HistoryCursor = { createdAt: row.after_at, id: row.after_id };
  if (after.createdAt < row.since) Object.assign(after, { createdAt: row.since - 1, id: '\uffff' });
  const isThere = tx.db.get(
    `select 1 from webhook where team_id = ? and id = ? and state <> 'deleted'`,
    teamId,
    webhookId,
  );
  const selected = (isThere === undefined ? [] : (JSON.parse(row.states) as DeliveryState[]))
    .flatMap((state) =>
      tx.db.all<Selected>(FORWARDS, teamId, webhookId, state, row.until, after.createdAt, after.id, limit),
    )
    .sort(byAge)
    .slice(0, limit);
  const made = selected.filter(
    (one) =>
      !isMadeGood(tx, row, one) &&
      addReplayed(tx, { teamId, webhookId, sequence: one.sequence, replayId }) !== undefined,
  ).length;
  const last = selected.at(-1) ?? after;
  tx.db.run(
    'update replay set after_at = ?, after_id = ?, made = made + ?, state = ? where team_id = ? and id = ?',
    last.createdAt,
    last.id,
    made,
    selected.length < limit ? 'done' : 'running',
    teamId,
    replayId,
  );
  return Math.max(1, selected.length);
}

/** A delivery that a replay selects. */
type Selected = HistoryCursor & { sequence: number; state: DeliveryState };

/** Whether a failed delivery was followed by one of the same event that has arrived or is waiting. */
function isMadeGood(tx: Tx, { team_id, webhook_id }: ReplayRow, failed: Selected): boolean {
  if (failed.state !== 'dead' && failed.state !== 'canceled') return false;
  const since = tx.db.get(
    `select 1 from delivery indexed by delivery_event
     where team_id = ? and event_sequence = ? and webhook_id = ? and state in ('delivered', 'waiting')
       and created_at >= ? and id <> ? limit 1`,
    team_id,
    failed.sequence,
    webhook_id,
    failed.createdAt,
    failed.id,
  );
  return since !== undefined;
}

/** Undefined if this replay has already made a delivery of that event. */
function addReplayed(
  tx: Tx,
  delivery: { teamId: string; webhookId: string; sequence: number; replayId: string | null },
): string | undefined {
  const id = newId('dlv', tx.now);
  const made = tx.db.run(
    `insert into delivery
       (team_id, id, webhook_id, event_sequence, state, next_at, created_at, origin, class, replay_id)
     values (?, ?, ?, ?, 'waiting', ?, ?, 'replay', 2, ?) on conflict do nothing`,
    delivery.teamId,
    id,
    delivery.webhookId,
    delivery.sequence,
    tx.now,
    tx.now,
    delivery.replayId,
  );
  if (made === 0) return undefined;
  touchLane(tx, delivery.teamId, delivery.webhookId);
  return id;
}
