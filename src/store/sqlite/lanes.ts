/** Lanes: the webhooks that have deliveries due, and what is due for one of them. */
import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DeliveryOrigin,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../../model/delivery.ts';
import type { DueLane, LaneName } from '../webhook-operations.ts';
import type { Value } from './database.ts';
import type { View } from './transaction.ts';

/**
 * Steps from team to team and from webhook to webhook through the index `delivery_due`, one seek each. The two
 * levels are apart because SQLite seeks only by the first column of a row value that it has just computed.
 */
export const WAITING_LANES = `
  with recursive
    waiting_team (team_id) as (
      select min(team_id) from delivery where state = 'waiting'
      union all
      select (select min(d.team_id) from delivery d where d.state = 'waiting' and d.team_id > waiting_team.team_id)
      from waiting_team where team_id is not null
    ),
    lane (team_id, webhook_id) as (
      select team_id,
             (select min(d.webhook_id) from delivery d
              where d.state = 'waiting' and d.team_id = waiting_team.team_id)
      from waiting_team where team_id is not null
      union all
      select team_id,
             (select min(d.webhook_id) from delivery d
              where d.state = 'waiting' and d.team_id = lane.team_id and d.webhook_id > lane.webhook_id)
      from lane where webhook_id is not null
    )`;

interface LaneRow {
  teamId: string;
  webhookId: string;
  url: string;
  secret: string;
  previousSecret: string | null;
  headers: string | null;
  settings: string;
  failingSince: number | null;
  rewrites: number;
}

const COLUMNS = `
  webhook.team_id as teamId, webhook.id as webhookId, webhook.url, webhook.secret, webhook.headers,
  webhook.settings, webhook.failing_since as failingSince,
  (select rewrites from team where team.id = webhook.team_id) as rewrites,
  iif(webhook.previous_until > ?1, webhook.previous_secret, null) as previousSecret`;
// One seek for each class, for only within a class is the first the one that has been due longest; and another one
// for what is dated further ahead than anything waits, where nothing is due otherwise.
const HAS_DUE = `
  webhook.state = 'active' and
  case when json_extract(webhook.settings, '$.ordered') then
    (select d.next_at from delivery d indexed by delivery_order
     where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
     order by d.event_sequence, d.id limit 1) not between ?1 + 1 and ?1 + ${LONGEST_WAIT_MS}
  else ${['<= ?1', `> ?1 + ${LONGEST_WAIT_MS}`]
    .flatMap((isDue) =>
      DELIVERY_CLASSES.map(
        (_, place) => `exists (
      select 1 from delivery d indexed by delivery_due
      where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
        and d.class = ${place} and d.next_at ${isDue})`,
      ),
    )
    .join(' or ')}
  end`;
/** Both are exported so that a test can ask how they are carried out. */
export const NAMES = `${WAITING_LANES} select team_id, webhook_id from lane where webhook_id is not null`;
export const DUE_OF_NAMED = `
  select ${COLUMNS} from json_each(?2) named
  cross join webhook on webhook.team_id = named.value ->> 0 and webhook.id = named.value ->> 1
  where ${HAS_DUE}`;
const LANE = `select ${COLUMNS} from webhook where webhook.team_id = ?2 and webhook.id = ?3 and ${HAS_DUE}`;

/** A page of lanes by name: team and webhook. */
export type LanePage = [teamId: string, webhookId: string][];

/** Lanes whose rows are read in one go. */
const LANE_PAGE = 100;

/**
 * The lanes that have something waiting. The process that owns the file holds every one, without a lease. What is due
 * in them is asked a page at a time: measured with 1,000 lanes and 100,000 deliveries, all in one statement keep the
 * event loop for 15 ms, the names for 4 and a page for 0.3.
 */
export function lanePages(view: View): LanePage[] {
  const names = view.db.arrays<LanePage[number]>(NAMES);
  return Array.from({ length: Math.ceil(names.length / LANE_PAGE) }, (_, page) =>
    names.slice(page * LANE_PAGE, (page + 1) * LANE_PAGE),
  );
}

/** Those of a page in which something is due. */
export function dueLanes(view: View, page: LanePage): DueLane[] {
  return view.db.all<LaneRow>(DUE_OF_NAMED, view.now, JSON.stringify(page)).map(toLane);
}

export function lane(view: View, { teamId, webhookId }: LaneName): DueLane | undefined {
  const row = view.db.get<LaneRow>(LANE, view.now, teamId, webhookId);
  return row && toLane(row);
}

function toLane({ secret, previousSecret, settings, ...lane }: LaneRow): DueLane {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  return { ...lane, epoch: 0, secrets, settings: JSON.parse(settings) };
}

// What is due is looked up in the index alone: most of a page may be known already, and its events stay unread.
const OF_A_LANE = 'team_id = ? and webhook_id = ?';
const dueOfAClass = (isDue: string) => `
  select id from delivery indexed by delivery_due
  where state = 'waiting' and ${OF_A_LANE} and class = ? and next_at ${isDue} order by next_at, id limit ?`;
const DUE_OF_A_CLASS = dueOfAClass('<= ?');
const AHEAD_OF_A_CLASS = dueOfAClass('> ?');
const IN_ORDER = `
  select id from delivery indexed by delivery_order
  where state = 'waiting' and ${OF_A_LANE} order by event_sequence, id limit ?`;
const BY_ID = `
  select delivery.id, delivery.origin, delivery.class, delivery.attempt, delivery.next_at, delivery.created_at,
         event.id, event.type, event.sequence, event.body, (select rewrites from team where team.id = ?1),
         event.trace
  from json_each(?3) wanted
  cross join delivery on delivery.team_id = ?1 and delivery.id = wanted.value
  cross join event on event.team_id = ?1 and event.sequence = delivery.event_sequence
  where delivery.state = 'waiting'
    and exists (select 1 from webhook where team_id = ?1 and id = ?2 and webhook.state = 'active')
  order by wanted.key`;

type DueRow = [
  id: string,
  origin: DeliveryOrigin,
  place: number,
  attempt: number,
  dueAt: number,
  createdAt: number,
  eventId: string,
  eventType: string,
  sequence: number,
  body: string,
  rewrites: number,
  trace: string | null,
];

export function load(
  view: View,
  input: LaneName & {
    limits: Record<DeliveryClass, number>;
    ordered: boolean;
    held?: { has(id: string): boolean };
  },
): DueDelivery[] {
  const { teamId, webhookId, limits, held } = input;
  const due = input.ordered
    ? ids(view, IN_ORDER, teamId, webhookId, limits.live)
    : DELIVERY_CLASSES.flatMap((name, place) =>
        limits[name] > 0 ? ofAClass(view, input, place, limits[name]) : [],
      );
  const wanted = held === undefined ? due : due.filter((id) => !held.has(id));
  if (wanted.length === 0) return [];
  return view.db.arrays<DueRow>(BY_ID, teamId, webhookId, JSON.stringify(wanted)).map((row) => {
    const [
      id,
      origin,
      place,
      attempt,
      dueAt,
      createdAt,
      eventId,
      eventType,
      sequence,
      body,
      rewrites,
      trace,
    ] = row;
    return {
      teamId,
      id,
      webhookId,
      origin,
      class: DELIVERY_CLASSES[place] as DeliveryClass,
      attempt,
      dueAt,
      createdAt,
      eventId,
      eventType,
      sequence,
      body,
      rewrites,
      trace,
    };
  });
}

/** What has been due longest; where nothing is, what was dated before the clock was set back. */
function ofAClass(view: View, { teamId, webhookId }: LaneName, place: number, limit: number): string[] {
  const due = ids(view, DUE_OF_A_CLASS, teamId, webhookId, place, view.now, limit);
  if (due.length > 0) return due;
  return ids(view, AHEAD_OF_A_CLASS, teamId, webhookId, place, view.now + LONGEST_WAIT_MS, limit);
}

function ids(view: View, sql: string, ...values: Value[]): string[] {
  return view.db.arrays<[id: string]>(sql, ...values).map(([id]) => id);
}
