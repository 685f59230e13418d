/**
 * Carries out replays of a selection, a few deliveries at a time.
 *
 * A replay visits the history of its webhook. The cursor is in the replay's row, and moves in the same transaction that
 * sends the deliveries, so that a crash between two steps loses nothing. A delivery stores the id of the replay that
 * sent it, so that the replay sends each message once. A lock on the replay's row keeps two nodes from taking the same
 * step.
 */

import type { DeliveryState } from '../../../model/delivery.ts';
import { newId } from '../../../std/id.ts';
import type { Page } from '../../page.ts';
import { Part } from '../../sql.ts';
import type { LaneName, Tx, View } from '../../transaction.ts';
import { touchLane } from '../agenda.ts';
import { IS_ORDERED } from '../lanes.ts';
import {
  addReplayed,
  ask,
  chooseReplay,
  keyOfMessage,
  lockWebhook,
  makeDueUpTo,
  select,
  siblingsOf,
  startOf,
} from './replays.ts';
import { narrowed } from './search.ts';

/** Lists webhooks with running replays, of all teams, after the webhook `after`. */
export function replaying(view: View, { after, limit }: Page<LaneName>): Promise<LaneName[]> {
  // The order lists all columns of `replay_running`, so that the planner can use no other index.
  return view.db.all<LaneName>`
    select distinct team_id as "teamId", webhook_id as "webhookId" from replay /* use replay_running */
    where state = 'running' and (team_id, webhook_id) > (${after?.teamId ?? ''}, ${after?.webhookId ?? ''})
    order by team_id, webhook_id limit ${limit}`;
}

// Selects the oldest running replay of a webhook. Later replays of the webhook wait until the oldest is done.
const RUNNING = `
  select replay.id,
         (select ${IS_ORDERED} from webhook
          where webhook.team_id = $1 and webhook.id = $2 and webhook.state <> 'deleted') as ordered,
         (select count(*) from (
            select 1 from delivery /* use delivery_due */
            where team_id = $1 and webhook_id = $2 and state = 'waiting' and class = 2 and class > 0 and next_at <= $4
            order by next_at, id limit $3) replayed) as waiting
  from replay /* use replay_running */
  where team_id = $1 and webhook_id = $2 and state = 'running' order by created_at, id limit 1`;

/** Whether a replay is running. */
export async function replaysRun(view: View): Promise<boolean> {
  // The order lists all columns of `replay_running`, so that the planner can use no other index.
  const row = await view.db.get(`
    select 1 from replay /* use replay_running */
    where state = 'running' order by team_id, webhook_id, created_at, id limit 1`);
  return row !== undefined;
}

/** `ordered` is null if the webhook was removed. */
interface Running extends LaneName {
  id: string;
  ordered: boolean | null;
}

/**
 * Advances the oldest running replay of a webhook by up to `limit` deliveries. Does nothing if the webhook already has
 * `waiting` replayed deliveries due, unless it is ordered. Returns how many deliveries were visited, or 0 if nothing was
 * done.
 */
export async function stepReplay(
  tx: Tx,
  { teamId, webhookId, limit, waiting }: LaneName & { limit: number; waiting: number },
): Promise<number> {
  const row = await tx.db.get<{ id: string; ordered: boolean | null; waiting: number }>(
    RUNNING,
    teamId,
    webhookId,
    waiting,
    tx.now + SOON_MS,
  );
  if (row === undefined) return 0;
  const ordered = row.ordered === null ? null : Boolean(row.ordered);
  // An ordered webhook receives nothing until its replay is done, so waiting for its due deliveries would be
  // pointless.
  const free = ordered === true ? limit : Math.min(limit, waiting - row.waiting);
  return free > 0 ? step(tx, { teamId, webhookId, id: row.id, ordered }, free) : 0;
}

/** The state of a running replay. */
interface Progress {
  states: string;
  /** JSON; null: the replay sends everything that it selects. */
  narrowing: string | null;
  since: number;
  until: number;
  made: number;
  afterAt: number;
  afterId: string;
  /** The due time of the last delivery that the replay sent. */
  dueAt: number;
}

const PROGRESS = new Part(
  'states, narrowing, since, until, made, after_at as "afterAt", after_id as "afterId", due_at as "dueAt"',
);

/**
 * Advances a replay by up to `limit` deliveries. Returns how many deliveries the step visited (at least 1), or 0 if
 * another node is advancing this replay.
 */
async function step(tx: Tx, one: Running, limit: number): Promise<number> {
  const { teamId, id: replayId, webhookId } = one;
  const lane = { teamId, webhookId };
  const row = await tx.db.get<Progress>`
    select ${PROGRESS} from replay where team_id = ${teamId} and id = ${replayId}
      and state = 'running' for update skip locked`;
  if (row === undefined) return 0;
  await lockWebhook(tx, lane);
  const states: DeliveryState[] = one.ordered === null ? [] : JSON.parse(row.states);
  const after = row.afterAt < row.since ? startOf(row.since) : { createdAt: row.afterAt, id: row.afterId };
  const selected = await select(tx, { ...lane, states, until: row.until, after, limit });
  const narrowing = row.narrowing === null ? {} : JSON.parse(row.narrowing);
  const matching = await narrowed(tx, teamId, narrowing, selected);
  const siblings = await siblingsOf(tx, lane, matching);
  const due = dueTimes(row, { count: matching.length, ordered: one.ordered === true, nowMs: tx.now });
  const chosen = new Map<string, Chosen>();
  for (const delivery of matching.toSorted((a, b) => a.sequence - b.sequence)) {
    const key = keyOfMessage(delivery);
    if (chosen.has(key)) continue;
    const choice = chooseReplay(delivery, siblings.of(delivery), { states, replayId });
    if (choice === null) continue;
    const dueAt = due[chosen.size] as number;
    const id = 'due' in choice ? choice.due : newId('dlv', tx.now);
    const { sequence, id: originalId } = delivery;
    chosen.set(key, { id, sequence, dueAt, originalId, isNew: 'copy' in choice });
  }
  const all = [...chosen.values()];
  const [first] = all;
  const made =
    (await makeDue(tx, { teamId, replayId, deliveries: all.filter(({ isNew }) => !isNew) })) +
    (await addReplayed(tx, lane, { replayId, deliveries: all.filter(({ isNew }) => isNew) }));
  // An ordered webhook receives the waiting deliveries of earlier events first, whether or not they are selected.
  const lastChosen = all.at(-1);
  if (one.ordered === true && lastChosen !== undefined) await makeDueUpTo(tx, lane, lastChosen);
  // The first delivery ends a pause of the webhook's circuit breaker, because the user who started the replay wants to
  // know whether the endpoint works again.
  if (row.made === 0 && first !== undefined) await ask(tx, lane, first.id);
  const last = selected.at(-1) ?? after;
  const isDone = selected.length < limit;
  await tx.db.run`
    update replay set after_at = ${last.createdAt}, after_id = ${last.id},
      made = made + ${made}, due_at = coalesce(${all.at(-1)?.dueAt ?? null},
      due_at), state = ${isDone ? 'done' : 'running'}
    where team_id = ${teamId} and id = ${replayId}`;
  if (made > 0 || isDone) touchLane(tx, teamId, webhookId);
  return Math.max(1, selected.length);
}

interface Chosen {
  id: string;
  sequence: number;
  dueAt: number;
  originalId: string;
  isNew: boolean;
}

/**
 * Reschedules waiting deliveries after all other deliveries of their webhook, in the order of the replay. Returns how
 * many deliveries were rescheduled.
 */
async function makeDue(
  tx: Tx,
  { teamId, replayId, deliveries }: { teamId: string; replayId: string; deliveries: readonly Chosen[] },
): Promise<number> {
  const made = await Promise.all(
    deliveries.map(
      ({ id, dueAt }) =>
        tx.db.run`
        update delivery set next_at = ${dueAt}, class = 2, replay_id = ${replayId}
        where team_id = ${teamId} and id = ${id} and state = 'waiting'`,
    ),
  );
  return made.reduce((sum, count) => sum + count, 0);
}

/** Replayed deliveries due within this time count as waiting. Failed deliveries are due later, so they do not count. */
const SOON_MS = 2_000;

/**
 * Returns the due times of the deliveries that a step sends. They are a millisecond apart, so that a lane sends the
 * deliveries in the order of their events. An ordered lane keeps this order in any case.
 */
function dueTimes(
  { dueAt: last }: Progress,
  { count, ordered, nowMs }: { count: number; ordered: boolean; nowMs: number },
): number[] {
  if (ordered) return Array(count).fill(nowMs);
  // If the last due time is far in the future, it was stored before the clock was set back.
  const from = last > nowMs + SOON_MS ? nowMs - count : Math.max(last + 1, nowMs - count);
  return Array.from({ length: count }, (_, place) => from + place);
}
