/**
 * Replays: events that are sent once more, as new deliveries behind all others of their webhook.
 *
 * A replay of a selection walks through the history of its webhook and keeps its place in its row, moved in the
 * transaction that makes the deliveries: a crash between two steps costs nothing. That each event comes once is
 * kept by the index `delivery_replay`.
 */

import { DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { newId } from '../../std/id.ts';
import { type ReplayRow, toReplay } from '../replay-row.ts';
import { touchLane } from '../touched.ts';
import type { DeliveryFilter, Replay } from '../webhook-operations.ts';
import { byAge, type Place } from './deliveries.ts';
import { once } from './idempotency.ts';
import type { Tx, View } from './transaction.ts';

/** Webhooks whose replays one step looks at; the next one goes on behind them. */
const MAX_WEBHOOKS = 100;

export function replay(
  tx: Tx,
  input: { teamId: string; webhookId?: string; ids: readonly string[]; idempotencyKey?: string | null },
): string[] | undefined {
  const { teamId, webhookId, ids, idempotencyKey = null } = input;
  const target = webhookId ?? ids.join();
  return once(tx, { teamId, operation: 'deliveries.replay', target, idempotencyKey }, () => again(tx, input));
}

function again(tx: Tx, { teamId, webhookId, ids }: Parameters<typeof replay>[1]): string[] | undefined {
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
  // Without a replay that they belong to none of them can be there already.
  return all.map((original) => addReplayed(tx, { ...original, teamId, replayId: null }) as string);
}

export function startReplay(
  tx: Tx,
  input: DeliveryFilter & { states: readonly DeliveryState[]; idempotencyKey?: string | null },
): Replay | undefined {
  const { teamId, webhookId: target, idempotencyKey = null } = input;
  const call = { teamId, operation: 'deliveries.startReplay', target, idempotencyKey } as const;
  const id = once(tx, call, () => begin(tx, input)?.id);
  return id === undefined ? undefined : getReplay(tx, { teamId, id });
}

function begin(tx: Tx, input: Parameters<typeof startReplay>[1]): Replay | undefined {
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
    // What it makes itself must not be selected by it, for ever.
    Math.min(until, tx.now),
    tx.now,
  ) as ReplayRow;
  return toReplay(row);
}

export function getReplay(view: View, { teamId, id }: { teamId: string; id: string }): Replay | undefined {
  const row = view.db.get<ReplayRow>('select * from replay where team_id = ? and id = ?', teamId, id);
  return row && toReplay(row);
}

/** The webhook that the stepping has come to, and whether this round through them has done anything. */
export interface ReplayPlace {
  teamId: string;
  webhookId: string;
  moved: boolean;
}

/** Before the first. */
export const REPLAY_START: ReplayPlace = { teamId: '', webhookId: '', moved: false };

// Of each webhook the oldest one: the others follow when it is done.
const RUNNING = `
  select * from replay indexed by replay_running
  where state = 'running' and (team_id, webhook_id) > (?, ?) and id = (
    select first.id from replay first indexed by replay_running
    where first.team_id = replay.team_id and first.webhook_id = replay.webhook_id and first.state = 'running'
    order by first.created_at, first.id limit 1)
  order by team_id, webhook_id limit ?`;

/** `next` is null at the end of a round through the webhooks; it is done when a whole round found nothing to do. */
export function stepReplays(
  tx: Tx,
  { limit, waiting, after }: { limit: number; waiting: number; after: ReplayPlace },
): { done: boolean; next: ReplayPlace | null } {
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

/** Takes a replay past so many deliveries; answers what that has cost, at least 1. */
function step(tx: Tx, row: ReplayRow, limit: number): number {
  const { team_id: teamId, id: replayId, webhook_id: webhookId } = row;
  const after: Place = { createdAt: row.after_at, id: row.after_id };
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
type Selected = Place & { sequence: number; state: DeliveryState };

/** Whether a delivery that failed was followed by one of the same event that has arrived, or is on its way. */
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

/** Nothing when this replay has made one of that event already. */
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
