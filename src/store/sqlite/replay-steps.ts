/**
 * Replays of a selection, carried out a few deliveries at a time.
 *
 * A replay goes through the history of its webhook. Its cursor is part of its row and moves in the transaction that
 * sends the deliveries, so that a crash between two steps loses nothing. A delivery that it has sent carries its id, so
 * that each event comes once.
 */
import type { DeliveryState } from '../../model/delivery.ts';
import { chooseReplay } from '../replay-choice.ts';
import { dueTimes, type ReplayRow, SOON_MS } from '../replay-row.ts';
import { touchLane } from '../touched.ts';
import type { HistoryCursor } from './deliveries.ts';
import { addReplayed, ask, select, siblingsOf, startOf } from './replays.ts';
import type { Tx } from './transaction.ts';

/** How many webhooks' replays one step looks at; the next step continues after them. */
const MAX_WEBHOOKS = 100;

/** The last webhook stepped, and whether this round through the webhooks has done anything. */
export interface ReplayCursor {
  teamId: string;
  webhookId: string;
  moved: boolean;
}

export const REPLAY_START: ReplayCursor = { teamId: '', webhookId: '', moved: false };

// The oldest running replay of each webhook: its others follow when that is done.
const RUNNING = `
  select replay.*, (
    select json_extract(webhook.settings, '$.ordered') from webhook
    where webhook.team_id = replay.team_id and webhook.id = replay.webhook_id and webhook.state <> 'deleted'
  ) as ordered
  from replay indexed by replay_running
  where state = 'running' and (team_id, webhook_id) > (?, ?) and id = (
    select first.id from replay first indexed by replay_running
    where first.team_id = replay.team_id and first.webhook_id = replay.webhook_id and first.state = 'running'
    order by first.created_at, first.id limit 1)
  order by team_id, webhook_id limit ?`;

/** `ordered` is null when the webhook is gone. */
type RunningRow = ReplayRow & { ordered: 0 | 1 | null };

/** `next` is null at the end of a round through the webhooks; `done` when a whole round found nothing to do. */
export function stepReplays(
  tx: Tx,
  { limit, waiting, after }: { limit: number; waiting: number; after: ReplayCursor },
): { done: boolean; next: ReplayCursor | null } {
  let room = limit;
  let place = after;
  const rows = tx.db.all<RunningRow>(RUNNING, after.teamId, after.webhookId, MAX_WEBHOOKS);
  for (const row of rows) {
    // An ordered webhook is sent nothing until the replay is done, so there is nothing to wait for.
    const free = row.ordered === 1 ? room : Math.min(room, waiting - replayedDue(tx, row, waiting));
    if (free > 0) room -= step(tx, row, free);
    place = { teamId: row.team_id, webhookId: row.webhook_id, moved: after.moved || room < limit };
    if (room <= 0) break;
  }
  if (room <= 0 || rows.length === MAX_WEBHOOKS) return { done: false, next: place };
  return { done: !place.moved, next: null };
}

const REPLAYED_DUE = `
  select count(*) as count from (
    select 1 from delivery indexed by delivery_due
    where team_id = ? and webhook_id = ? and state = 'waiting' and class = 2 and next_at <= ? limit ?)`;

function replayedDue(tx: Tx, { team_id, webhook_id }: ReplayRow, atMost: number): number {
  return (
    tx.db.get<{ count: number }>(REPLAYED_DUE, team_id, webhook_id, tx.now + SOON_MS, atMost)?.count ?? 0
  );
}

/** Advances a replay by up to `limit` deliveries; returns how many it has read, at least 1. */
function step(tx: Tx, row: RunningRow, limit: number): number {
  const { team_id: teamId, id: replayId, webhook_id: webhookId, until } = row;
  const lane = { teamId, webhookId };
  const states: DeliveryState[] = row.ordered === null ? [] : JSON.parse(row.states);
  const after: HistoryCursor =
    row.after_at < row.since ? startOf(row.since) : { createdAt: row.after_at, id: row.after_id };
  const selected = select(tx, { ...lane, states, until, after, limit });
  const last = selected.at(-1) ?? after;
  const due = dueTimes(row, { count: selected.length, ordered: row.ordered === 1, nowMs: tx.now });
  let made = 0;
  for (const one of selected.toSorted((a, b) => a.sequence - b.sequence)) {
    const choice = chooseReplay(one, siblingsOf(tx, lane, one.sequence), { states, replayId });
    if (choice === null) continue;
    const dueAt = due[made] as number;
    const id =
      'due' in choice ? choice.due : addReplayed(tx, lane, { sequence: one.sequence, dueAt, replayId });
    if ('due' in choice) makeDue(tx, { teamId, id, dueAt, replayId });
    // The first one ends a rest of the lane: somebody wants to know whether the endpoint is well again.
    if (row.made + made === 0) ask(tx, lane, id);
    made += 1;
  }
  const isDone = selected.length < limit;
  tx.db.run(
    `update replay set after_at = ?, after_id = ?, made = made + ?, due_at = coalesce(?, due_at), state = ?
     where team_id = ? and id = ?`,
    last.createdAt,
    last.id,
    made,
    due[made - 1] ?? null,
    isDone ? 'done' : 'running',
    teamId,
    replayId,
  );
  if (made > 0 || isDone) touchLane(tx, teamId, webhookId);
  return Math.max(1, selected.length);
}

/** Behind all others of its webhook, in the order in which the replay comes to it. */
function makeDue(
  tx: Tx,
  { teamId, id, dueAt, replayId }: { teamId: string; id: string; dueAt: number; replayId: string },
): void {
  tx.db.run(
    `update delivery set next_at = ?, class = 2, replay_id = ? where team_id = ? and id = ? and state = 'waiting'`,
    dueAt,
    replayId,
    teamId,
    id,
  );
}
