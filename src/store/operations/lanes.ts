/** Lanes: each lane is the queue of deliveries of one webhook. This file contains what SQLite and PostgreSQL share. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../../model/delivery.ts';
import type { Breaker } from '../../model/lane.ts';
import type { WebhookSettings } from '../../model/webhook.ts';
import { both, type Either } from '../sql.ts';
import type { LaneName, Tx, View } from '../transaction.ts';
import { dueTeams, raise } from './agenda.ts';

/** The node that sends deliveries, and the duration for which it leases a lane. */
export interface LaneHolder {
  nodeId: string;
  leaseMs: number;
}

/** Which lanes a node takes. SQLite ignores this, because there is only one node. */
export interface Takes {
  /** Called for each free lane that the node could take (default: it takes every one). */
  mayTake?: (lane: { webhookId: string; url: string }) => boolean;
}

/**
 * A lane leased by a node. `epoch` increases each time the lane gets another holder, so that reports of earlier holders
 * can be rejected.
 */
export interface HeldLane extends LaneName {
  epoch: number;
}

/** A lane with due deliveries, and everything needed to send them. */
export interface DueLane extends HeldLane {
  url: string;
  /** Encrypted secrets: the current one and, while it is still valid, the previous one. */
  secrets: string[];
  /** Encrypted JSON. */
  headers: string | null;
  /** The team's encrypted ed25519 key; null until somebody has read its public key. */
  signingKey: string | null;
  settings: WebhookSettings;
  failingSince: number | null;
  breaker: Breaker | null;
  /**
   * How often erasures have rewritten events of the team. A body that was loaded when this count was lower must not be
   * sent.
   */
  rewrites: number;
  /**
   * When someone last asked to send a delivery immediately, and which delivery. The request ends a pause that the
   * circuit breaker began earlier.
   */
  asked: { at: number; deliveryId: string } | null;
}

const WAITS = `d.state = 'waiting' and d.event_sequence > 0 and d.team_id = $1`;
/** One seek for the next webhook. The order lists all columns of `delivery_order`, so that no other index is used. */
const nextWebhook = (after: string): Either<string> => ({
  sqlite: `(select min(d.webhook_id) from delivery d indexed by delivery_order where ${WAITS} and d.webhook_id > ${after})`,
  postgres: `(
    select d.webhook_id from delivery d where ${WAITS} and d.webhook_id > ${after}
    order by d.team_id, d.webhook_id, d.class, d.event_sequence, d.id limit 1)`,
});

/**
 * SQL that begins with `with recursive` and defines `waiting_lane (webhook_id)`: the lanes of the team `$1` with waiting
 * deliveries, in order, after the webhook `after`. It needs one index seek per lane, and reads only as many lanes as the
 * outer query fetches.
 */
export function lanesOfTeam(after: string): Either<string> {
  const [first, next] = [nextWebhook(after), nextWebhook('step.webhook_id')];
  return {
    sqlite: `
      with recursive step (webhook_id) as (
        select ${first.sqlite} union all select ${next.sqlite} from step where webhook_id is not null
      ),
      waiting_lane (webhook_id) as (select webhook_id from step where webhook_id is not null)`,
    // PostgreSQL before version 18 has no loose index scan, and would read the whole backlog.
    postgres: `
      with recursive waiting_lane (webhook_id) as (
        ${first.postgres}
        union all
        select next.webhook_id from waiting_lane step cross join lateral ${next.postgres} next
      )`,
  };
}

/**
 * Number of lanes per page. SQLite reads the names and due deliveries of 100 lanes in 1 ms; one page of 10,000 lanes
 * took 80 ms.
 */
const LANE_PAGE = 100;

/** This statement is exported so that a test can check its query plan. */
export const NAMES = both(
  (pick) => `${pick(lanesOfTeam('$2'))} select webhook_id as "webhookId" from waiting_lane limit $3`,
);

/** Returns the next webhooks of a team with waiting deliveries, after the webhook `after`. */
export async function laneNames(
  view: View,
  { teamId, after = '' }: { teamId: string; after?: string | undefined },
): Promise<string[]> {
  const rows = await view.db.all<{ webhookId: string }>(NAMES, teamId, after, LANE_PAGE);
  return rows.map(({ webhookId }) => webhookId);
}

/** Yields the webhooks with waiting deliveries page by page, with a turn of the event loop between two pages. */
export async function* lanePages(
  names: (after?: string) => Promise<string[]>,
): AsyncGenerator<string[], void> {
  for (let after: string | undefined; ; await nextTurn()) {
    const page = await names(after);
    if (page.length > 0) yield page;
    if (page.length < LANE_PAGE) return;
    after = page.at(-1);
  }
}

/** SQL condition: the delivery `d` is waiting to be sent to `webhook`. As everywhere in this file, `$1` is the team. */
export const OF_WEBHOOK = `d.state = 'waiting' and d.team_id = $1 and d.webhook_id = webhook.id`;

/**
 * SQL condition: `webhook` is active. No index has this expression, so that PostgreSQL finds a webhook by its primary
 * key, and not by an index of webhooks in some state.
 */
const IS_ACTIVE = `(webhook.state || '') = 'active'`;

/** SQL condition: `webhook` receives deliveries in the order of their events. */
export const IS_ORDERED = `(webhook.settings::json ->> 'ordered')::boolean`;

const PLACES = DELIVERY_CLASSES.map((_, place) => place);
/** The classes of retries and replays. */
export const LATER = PLACES.filter((place) => place !== DELIVERY_CLASSES.indexOf('live'));

/**
 * SQL that runs the query `seek` once per class. On PostgreSQL a single subquery covers all classes, because planning a
 * subquery takes long.
 */
const ofClasses = (places: readonly number[], seek: (place: string) => string): Either<string> => ({
  sqlite: places.map((place) => `select * from (${seek(`${place}`)}) of_class_${place}`).join(' union all '),
  postgres: `
    select of_class.* from (values ${places.map((place) => `(${place})`).join(', ')}) as each (class)
    cross join lateral (${seek('each.class')}) of_class`,
});

// New deliveries are sorted by the sequence of their events. Retries and replays are sorted by due time, but only
// within each class.
const LIVE = `delivery d /* use delivery_order */ where ${OF_WEBHOOK} and d.event_sequence > 0 and d.class = 0`;
const ofLater = (isDue: string, order: 'asc' | 'desc' = 'asc') =>
  ofClasses(
    LATER,
    (place) => `
      select d.next_at from delivery d /* use delivery_due */
      where ${OF_WEBHOOK} and d.class > 0 and d.class = ${place} and ${isDue}
      order by d.next_at ${order}, d.id ${order} limit 1`,
  );

/**
 * SQL for the due time of the first waiting delivery of the ordered `webhook`, by event sequence.
 *
 * @param seen a sequence number; new deliveries up to this number are no longer waiting
 */
const firstInOrder = (seen = '0') => {
  const first = ofClasses(
    PLACES,
    (place) => `
      select d.next_at, d.event_sequence, d.id from delivery d /* use delivery_order */
      where ${OF_WEBHOOK} and d.event_sequence > 0 and d.class = ${place}
        and d.event_sequence > case ${place} when 0 then ${seen} else 0 end
      order by d.event_sequence, d.id limit 1`,
  );
  return both(
    (pick) => `(
    select first.next_at from (${pick(first)}) first order by first.event_sequence, first.id limit 1)`,
  );
};

/**
 * SQL for the time at which the first delivery of `webhook` is due. For an ordered webhook, the first delivery is the
 * one with the smallest sequence. Null if no delivery is waiting.
 */
export const FIRST_DUE_AT = both(
  (pick) => `
  case when ${IS_ORDERED} then ${pick(firstInOrder())}
  else (select min(next_at) from (
    select * from (select d.next_at from ${LIVE} order by d.event_sequence, d.id limit 1) live
    union all ${pick(ofLater('true'))}
  ) of_classes) end`,
);

const FIRST_DUE_AT_OF_ONE = both(
  (pick) => `select ${pick(FIRST_DUE_AT)} as at from webhook where team_id = $1 and id = $2`,
);

/**
 * SQL condition: `webhook` has a delivery that is due, or whose date is so far ahead that the clock must have been set
 * back. `$2` is the time. The condition uses scalar subqueries instead of `exists`, which PostgreSQL may turn into one
 * scan of all waiting deliveries.
 *
 * @param seen a sequence number; new deliveries up to this number are no longer waiting
 * @param ahead whether to search for retries and replays that are dated too far ahead
 */
export function hasDue({ seen, ahead }: { seen: string; ahead: boolean }): Either<string> {
  const isWaiting = `between $2 + 1 and $2 + ${LONGEST_WAIT_MS}`;
  const due = ofLater('d.next_at <= $2');
  const dated = ofLater(`d.next_at > $2 + ${LONGEST_WAIT_MS}`, 'desc');
  // New deliveries are due when they are created, unless the clock was set back, so one seek after `seen` finds a due
  // one.
  return both(
    (pick) => `
  ${IS_ACTIVE} and
  case when ${IS_ORDERED} then
    ${replayRuns('$1', 'webhook.id')} is null and ${pick(firstInOrder(seen))} not ${isWaiting}
  else coalesce(
    (select true from ${LIVE} and d.event_sequence > ${seen} and not d.next_at ${isWaiting}
     order by d.event_sequence, d.id limit 1),
    (select true from (${pick(due)}) due limit 1),
    ${ahead ? `(select true from (${pick(dated)}) dated limit 1),` : ''}
    false)
  end`,
  );
}

/**
 * Returns when the first waiting delivery of a webhook is due. For an ordered webhook, the first delivery is the one
 * with the smallest sequence. Null if no delivery is waiting.
 */
export async function firstDueAt(view: View, { teamId, webhookId }: LaneName): Promise<number | null> {
  const row = await view.db.get<{ at: number | null }>(FIRST_DUE_AT_OF_ONE, teamId, webhookId);
  return row?.at ?? null;
}

const NEXT_OF_PAGE = both(
  (pick) => `
  select min(${pick(FIRST_DUE_AT)}) as at, max(case when ${IS_ORDERED} then 1 else 0 end) as ordered
  from unnest($2::text[]) as named (webhook_id) cross join webhook
  where webhook.team_id = $1 and webhook.id = named.webhook_id and webhook.state = 'active'`,
);
/** When a team's lanes are searched again at the latest, if deliveries wait. */
const SEARCH_AGAIN_MS = 3_600_000;
/** The same for ordered lanes. A delivery becomes due when the one before it has ended, which nobody announces. */
const SEARCH_ORDERED_MS = 30_000;
/** A team's agenda is raised when it has been in the past for this long: not after every delivery. */
const STALE_MS = 10_000;

/**
 * When the first waiting delivery of a team's active webhooks is due (`at`, null if none waits), and when the team's
 * lanes must be searched again (null if nothing waits for any webhook).
 */
async function nextOf(
  view: View,
  { teamId }: { teamId: string },
): Promise<{ at: number | null; searchAt: number | null }> {
  let [first, latest] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for await (const page of lanePages((after) => laneNames(view, { teamId, after }))) {
    const row = await view.db.get<{ at: number | null; ordered: number | null }>(NEXT_OF_PAGE, teamId, page);
    const againMs = row?.ordered === 1 ? SEARCH_ORDERED_MS : SEARCH_AGAIN_MS;
    latest = Math.min(latest, view.now + againMs);
    first = Math.min(first, row?.at ?? first);
  }
  if (latest === Number.POSITIVE_INFINITY) return { at: null, searchAt: null };
  // A delivery that is dated too far ahead was stored before the clock was set back.
  if (first > view.now + LONGEST_WAIT_MS && first < Number.POSITIVE_INFINITY) first = view.now;
  return {
    at: first === Number.POSITIVE_INFINITY ? null : first,
    searchAt: Math.min(first, latest),
  };
}

/**
 * After a search that found nothing due in a team: when the team's lanes must be searched again. `isStale` means that
 * the agenda says much too early, so that `raiseLanes` should raise it.
 */
export async function afterSearch(
  view: View,
  { teamId }: { teamId: string },
): Promise<{ at: number | null; isStale: boolean }> {
  const team = await view.db.get<{ at: number | null }>(
    'select lanes_at as at from team where id = $1',
    teamId,
  );
  const { searchAt: at } = await nextOf(view, { teamId });
  const isLater = at === null || at > view.now;
  const storedAt = team?.at ?? null;
  return { at, isStale: isLater && storedAt !== null && isPast(view, storedAt, STALE_MS) };
}

/** Raises when the lanes of a team must be searched again, to what is stored now. Returns the new time. */
export function raiseLanes(tx: Tx, { teamId }: { teamId: string }): Promise<number | null> {
  return raise(tx, { teamId, item: 'lanes' }, async () => (await nextOf(tx, { teamId })).searchAt);
}

/** Maximum number of teams that are asked when their next delivery is due. */
const MAX_ASKED = 100;

/** When the first waiting delivery of all active webhooks is due; null if none is waiting. */
export async function nextDueAt(view: View): Promise<number | null> {
  const teams = await dueTeams(view, { item: 'lanes', until: Number.MAX_SAFE_INTEGER, limit: MAX_ASKED });
  let first = Number.POSITIVE_INFINITY;
  for (const { teamId, at } of teams) {
    if (first <= view.now) break;
    if (!isPast(view, at, 0)) return Math.min(first, at);
    first = Math.min(first, (await nextOf(view, { teamId })).at ?? first);
  }
  if (teams.length === MAX_ASKED) first = Math.min(first, view.now);
  return first === Number.POSITIVE_INFINITY ? null : first;
}

/** Whether a time is in the past for at least `forMs`, or so far ahead that the clock must have been set back. */
function isPast({ now }: View, at: number, forMs: number): boolean {
  return at <= now - forMs || at > now + LONGEST_WAIT_MS;
}

/**
 * SQL for whether a replay of a webhook is running. An ordered webhook must receive nothing until the replay has placed
 * all of its deliveries; otherwise a delivery of a later event would be sent too early.
 */
export const replayRuns = (teamId: string, webhookId: string): string => `(
  select true from replay /* use replay_running */
  where replay.team_id = ${teamId} and replay.webhook_id = ${webhookId} and replay.state = 'running'
  order by replay.created_at, replay.id limit 1)`;

/** The columns of `webhook` needed to send to it, for `toLane`; `$2` is the time. */
export const LANE_COLUMNS = `
  webhook.team_id as "teamId", webhook.id as "webhookId", webhook.url, webhook.secret, webhook.headers,
  webhook.settings, webhook.failing_since as "failingSince", webhook.breaker,
  webhook.asked_at as "askedAt", webhook.asked_id as "askedId",
  (select rewrites from team where team.id = $1) as rewrites,
  (select private_key from signing_key where signing_key.team_id = $1
   order by id desc limit 1) as "signingKey",
  case when webhook.previous_until > $2 then webhook.previous_secret end as "previousSecret"`;

interface LaneColumns {
  secret: string;
  previousSecret: string | null;
  settings: string;
  breaker: string | null;
  askedAt: number | null;
  askedId: string | null;
}

/** A lane as selected with `LANE_COLUMNS` and an epoch. */
export type LaneRow<Lane extends DueLane> = Omit<Lane, 'secrets' | 'settings' | 'breaker' | 'asked'> &
  LaneColumns;

export function toLane<Lane extends DueLane>(row: LaneRow<Lane>): Lane {
  const { secret, previousSecret, settings, breaker, askedAt, askedId, ...lane } = row;
  return {
    ...lane,
    secrets: previousSecret === null ? [secret] : [secret, previousSecret],
    settings: JSON.parse(settings),
    breaker: breaker === null ? null : JSON.parse(breaker),
    asked: askedAt === null ? null : { at: askedAt, deliveryId: askedId ?? '' },
  } as unknown as Lane;
}

/** The columns of a delivery `due` and its `event` for `toDue`; `$1` is the team. */
export const DUE_COLUMNS = `
  due.team_id as "teamId", due.id, due.webhook_id as "webhookId", due.origin, due.class as place, due.attempt,
  due.next_at as "dueAt", due.created_at as "createdAt",
  event.id as "eventId", coalesce(due.message_id, event.id) as "messageId", event.type as "eventType", event.sequence,
  coalesce(due.body, event.body) as body, event.trace,
  (select rewrites from team where team.id = $1) as rewrites`;

export type DueRow = Omit<DueDelivery, 'class'> & { place: number };

export function toDue({ place, ...due }: DueRow): DueDelivery {
  return { ...due, class: DELIVERY_CLASSES[place] as DeliveryClass };
}
