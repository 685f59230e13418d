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
import type { LaneName, View } from '../transaction.ts';

/** The node that sends deliveries, and the duration for which it leases a lane. */
export interface LaneHolder {
  nodeId: string;
  leaseMs: number;
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

/**
 * SQL that begins with `with recursive` and defines `waiting_lane (team_id, webhook_id)`: the lanes after the lane
 * `after` that have waiting deliveries, in order. The query needs one index seek per lane, and reads only as many lanes
 * as the outer query fetches. Its first row may be the lane `after` itself.
 */
export function waitingLanes(after: { teamId: string; webhookId: string }): Either<string> {
  const { teamId, webhookId } = after;
  const waits = `d.state = 'waiting' and d.event_sequence > 0`;
  return {
    // The query steps from webhook to webhook within a team and, after the last webhook of a team, to the next team.
    // These are two kinds of steps, because SQLite can seek only by the first column of a row value that the query has
    // just computed.
    sqlite: `
      with recursive step (team_id, webhook_id) as (
        select ${teamId}, ${webhookId}
        union all
        select team_id, (select min(d.webhook_id) from delivery d indexed by delivery_order
                         where ${waits} and d.team_id = step.team_id and d.webhook_id > step.webhook_id)
        from step where webhook_id is not null
        union all
        select (select min(d.team_id) from delivery d indexed by delivery_order
                where ${waits} and d.team_id > step.team_id), ''
        from step where webhook_id is null and team_id is not null
      ),
      waiting_lane (team_id, webhook_id) as (select team_id, webhook_id from step where webhook_id > '')`,
    // The query seeks lane by lane, because PostgreSQL before version 18 has no loose index scan, and would read the
    // whole backlog. The order lists all columns of `delivery_order`, so that the planner can use no other index.
    postgres: `
      with recursive waiting_lane (team_id, webhook_id) as (
        select ${teamId}::text collate "C", ${webhookId}::text collate "C"
        union all
        select next.team_id, next.webhook_id from waiting_lane cross join lateral (
          select d.team_id, d.webhook_id from delivery d
          where ${waits} and (d.team_id, d.webhook_id) > (waiting_lane.team_id, waiting_lane.webhook_id)
          order by d.team_id, d.webhook_id, d.class, d.event_sequence, d.id limit 1
        ) next
      )`,
  };
}

/** All lanes with waiting deliveries. */
export const WAITING_LANES = waitingLanes({ teamId: `''`, webhookId: `''` });

export type LanePage = [teamId: string, webhookId: string][];

/**
 * Number of lanes per page. SQLite reads the names and due deliveries of 100 lanes in 1 ms; one page of 10,000 lanes
 * took 80 ms.
 */
const LANE_PAGE = 100;

/** This statement is exported so that a test can check its query plan. */
export const NAMES = both(
  (pick) => `
  ${pick(waitingLanes({ teamId: '$1', webhookId: '$2' }))}
  select team_id as "teamId", webhook_id as "webhookId" from waiting_lane
  where (team_id, webhook_id) > ($1, $2) limit $3`,
);

/** Returns the names of the next lanes with waiting deliveries, after the lane `after`. */
export async function laneNames(view: View, after: LanePage[number] = ['', '']): Promise<LanePage> {
  const rows = await view.db.all<LaneName>(NAMES, ...after, LANE_PAGE);
  return rows.map(({ teamId, webhookId }) => [teamId, webhookId]);
}

/** Yields the names of all lanes page by page, with a turn of the event loop between two pages. */
export async function* lanePages(
  names: (after?: LanePage[number]) => Promise<LanePage>,
): AsyncGenerator<LanePage, void> {
  for (let after: LanePage[number] | undefined; ; await nextTurn()) {
    const page = await names(after);
    yield page;
    if (page.length < LANE_PAGE) return;
    after = page.at(-1);
  }
}

/** SQL for `named (team_id, webhook_id)`: the lanes of a page. `$1` is the page as JSON. */
export const NAMED = {
  sqlite: `(select value ->> 0 as team_id, value ->> 1 as webhook_id from json_each($1)) as named`,
  postgres: `(select value ->> 0 as team_id, value ->> 1 as webhook_id from json_array_elements($1::json)) as named`,
};

/** SQL condition: the delivery `d` is waiting to be sent to `webhook`. */
export const OF_WEBHOOK = `d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id`;

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
 * back. `$1` is the time. The condition uses scalar subqueries instead of `exists`, which PostgreSQL may turn into one
 * scan of all waiting deliveries.
 *
 * @param seen a sequence number; new deliveries up to this number are no longer waiting
 * @param ahead whether to search for retries and replays that are dated too far ahead
 */
export function hasDue({ seen, ahead }: { seen: string; ahead: boolean }): Either<string> {
  const isWaiting = `between $1 + 1 and $1 + ${LONGEST_WAIT_MS}`;
  const due = ofLater('d.next_at <= $1');
  const dated = ofLater(`d.next_at > $1 + ${LONGEST_WAIT_MS}`, 'desc');
  // New deliveries are due when they are created, unless the clock was set back, so one seek after `seen` finds a due
  // one.
  return both(
    (pick) => `
  ${IS_ACTIVE} and
  case when ${IS_ORDERED} then
    ${replayRuns('webhook.team_id', 'webhook.id')} is null and ${pick(firstInOrder(seen))} not ${isWaiting}
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

const NEXT_DUE_AT = both(
  (pick) => `
  select min(${pick(FIRST_DUE_AT)}) as at from ${pick(NAMED)} cross join webhook
  where webhook.team_id = named.team_id and webhook.id = named.webhook_id and webhook.state = 'active'`,
);

/** When the first waiting delivery of all active webhooks is due; null if none is waiting. */
export async function nextDueAt(view: View): Promise<number | null> {
  let first = Number.POSITIVE_INFINITY;
  for await (const page of lanePages((after) => laneNames(view, after))) {
    const row = await view.db.get<{ at: number | null }>(NEXT_DUE_AT, JSON.stringify(page));
    first = Math.min(first, row?.at ?? first);
  }
  return first === Number.POSITIVE_INFINITY ? null : first;
}

/**
 * SQL for whether a replay of a webhook is running. An ordered webhook must receive nothing until the replay has placed
 * all of its deliveries; otherwise a delivery of a later event would be sent too early.
 */
export const replayRuns = (teamId: string, webhookId: string): string => `(
  select true from replay /* use replay_running */
  where replay.team_id = ${teamId} and replay.webhook_id = ${webhookId} and replay.state = 'running'
  order by replay.created_at, replay.id limit 1)`;

/** The columns of `webhook` needed to send to it, for `toLane`; `$1` is the time. */
export const LANE_COLUMNS = `
  webhook.team_id as "teamId", webhook.id as "webhookId", webhook.url, webhook.secret, webhook.headers,
  webhook.settings, webhook.failing_since as "failingSince", webhook.breaker,
  webhook.asked_at as "askedAt", webhook.asked_id as "askedId",
  (select rewrites from team where team.id = webhook.team_id) as rewrites,
  (select private_key from signing_key where signing_key.team_id = webhook.team_id
   order by id desc limit 1) as "signingKey",
  case when webhook.previous_until > $1 then webhook.previous_secret end as "previousSecret"`;

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
  event.id as "eventId", event.type as "eventType", event.sequence, event.body, event.trace,
  (select rewrites from team where team.id = $1) as rewrites`;

export type DueRow = Omit<DueDelivery, 'class'> & { place: number };

export function toDue({ place, ...due }: DueRow): DueDelivery {
  return { ...due, class: DELIVERY_CLASSES[place] as DeliveryClass };
}
