/** Lanes: the webhooks that have deliveries due, and loading what is due in one of them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../../model/delivery.ts';
import type { Value, View } from '../sql.ts';
import type { DeliveryOperations, DueLane, LaneName } from '../webhook-operations.ts';

/**
 * The lanes with waiting deliveries behind the lane (?1, ?2): steps from webhook to webhook in the index
 * `delivery_order`, and from team to team, one seek each; a row without a webhook is the end or the start of a team.
 * SQLite takes no more steps than its reader asks for. In two kinds of steps, because it seeks only by the first column
 * of a row value that it has just computed.
 */
export const WAITING_LANES = `
  with recursive
    step (team_id, webhook_id) as (
      select ?1, ?2
      union all
      select team_id,
             (select min(d.webhook_id) from delivery d
              where d.state = 'waiting' and d.team_id = step.team_id and d.webhook_id > step.webhook_id)
      from step where webhook_id is not null
      union all
      select (select min(d.team_id) from delivery d where d.state = 'waiting' and d.team_id > step.team_id), ''
      from step where webhook_id is null and team_id is not null
    ),
    lane (team_id, webhook_id) as (
      select team_id, webhook_id from step where webhook_id > '' and (team_id, webhook_id) > (?1, ?2)
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
  breaker: string | null;
  rewrites: number;
  askedAt: number | null;
  askedId: string | null;
}

const COLUMNS = `
  webhook.team_id as teamId, webhook.id as webhookId, webhook.url, webhook.secret, webhook.headers,
  webhook.settings, webhook.failing_since as failingSince, webhook.breaker, webhook.asked_at as askedAt,
  webhook.asked_id as askedId,
  (select rewrites from team where team.id = webhook.team_id) as rewrites,
  iif(webhook.previous_until > ?1, webhook.previous_secret, null) as previousSecret`;
// While a replay puts deliveries of an ordered webhook into their places, one of a later event would come too early.
const REPLAY_RUNS = `select 1 from replay indexed by replay_running where state = 'running'`;
// One seek for each class, because the index is in order of `next_at` only within a class; and another one for what is
// dated further ahead than any delivery can wait, which happens when the clock is set back.
const HAS_DUE = `
  webhook.state = 'active' and
  case when json_extract(webhook.settings, '$.ordered') then
    not exists (${REPLAY_RUNS} and replay.team_id = webhook.team_id and replay.webhook_id = webhook.id) and
    (select d.next_at from delivery d
     where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
     order by d.event_sequence, d.id limit 1) not between ?1 + 1 and ?1 + ${LONGEST_WAIT_MS}
  else ${['<= ?1', `> ?1 + ${LONGEST_WAIT_MS}`]
    .flatMap((isDue) =>
      DELIVERY_CLASSES.map(
        (_, place) => `exists (
      select 1 from delivery d
      where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
        and d.class = ${place} and d.next_at ${isDue})`,
      ),
    )
    .join(' or ')}
  end`;
/** Both are exported for the test of their query plans. */
export const NAMES = `${WAITING_LANES} select team_id as "teamId", webhook_id as "webhookId" from lane limit ?3`;
export const DUE_OF_NAMED = `
  select ${COLUMNS} from json_each(?2) named
  cross join webhook on webhook.team_id = named.value ->> 0 and webhook.id = named.value ->> 1
  where ${HAS_DUE}`;
const LANE = `select ${COLUMNS} from webhook where webhook.team_id = ?2 and webhook.id = ?3 and ${HAS_DUE}`;

// One seek for each class; in an ordered lane the first delivery decides.
const firstOfAClass = (place: number) => `
  ifnull((select min(d.next_at) from delivery d
          where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
            and d.class = ${place}), 9e15)`;
/** When the first delivery of `webhook` is or was due; of an ordered one, the first by sequence. Null: none waits. */
export const FIRST_DUE_AT = `
  case when json_extract(webhook.settings, '$.ordered') then
    (select d.next_at from delivery d
     where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id
     order by d.event_sequence, d.id limit 1)
  else nullif(min(${DELIVERY_CLASSES.map((_, place) => firstOfAClass(place)).join(', ')}), 9e15) end`;

export async function firstDueAt(view: View, { teamId, webhookId }: LaneName): Promise<number | null> {
  const row = await view.db.get<{ at: number | null }>(
    `select ${FIRST_DUE_AT} as at from webhook where team_id = ? and id = ?`,
    teamId,
    webhookId,
  );
  return row?.at ?? null;
}

/** A page of lane names. */
export type LanePage = [teamId: string, webhookId: string][];

/** Lanes per page: their names and what is due in them take SQLite 1 ms, where all of 10,000 took 80. */
const LANE_PAGE = 100;

/** The names of the next lanes behind one that have something waiting. */
export async function laneNames(view: View, after: LanePage[number] = ['', '']): Promise<LanePage> {
  const rows = await view.db.all<LaneName>(NAMES, ...after, LANE_PAGE);
  return rows.map(({ teamId, webhookId }) => [teamId, webhookId]);
}

/**
 * All pages of lane names, with a turn of the event loop between them. The process that owns the file holds all lanes,
 * without leases.
 */
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

/** The lanes of a page in which something is due. */
export async function dueLanes(view: View, page: LanePage): Promise<DueLane[]> {
  const rows = await view.db.all<LaneRow>(DUE_OF_NAMED, view.now, JSON.stringify(page));
  return rows.map(toLane);
}

export async function lane(view: View, { teamId, webhookId }: LaneName): Promise<DueLane | undefined> {
  const row = await view.db.get<LaneRow>(LANE, view.now, teamId, webhookId);
  return row && toLane(row);
}

function toLane({ secret, previousSecret, settings, breaker, askedAt, askedId, ...lane }: LaneRow): DueLane {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  return {
    ...lane,
    epoch: 0,
    secrets,
    settings: JSON.parse(settings),
    breaker: breaker === null ? null : JSON.parse(breaker),
    asked: askedAt === null ? null : { at: askedAt, deliveryId: askedId ?? '' },
  };
}

// Ids are read from the index alone: the sender may hold most of them already, and then their events need not be read.
const OF_A_LANE = 'team_id = ? and webhook_id = ?';
const dueOfAClass = (isDue: string) => `
  select id from delivery
  where state = 'waiting' and ${OF_A_LANE} and class = ? and next_at ${isDue} order by next_at, id limit ?`;
const DUE_ONE = `select id from delivery where state = 'waiting' and ${OF_A_LANE} and id = ? and next_at <= ?`;
const DUE_OF_A_CLASS = dueOfAClass('<= ?');
const AHEAD_OF_A_CLASS = dueOfAClass('> ?');
const IN_ORDER = `
  select id from delivery
  where state = 'waiting' and ${OF_A_LANE}
    and not exists (${REPLAY_RUNS} and replay.team_id = delivery.team_id and replay.webhook_id = delivery.webhook_id)
  order by event_sequence, id limit ?`;
const BY_ID = `
  select delivery.team_id as "teamId", delivery.id, delivery.webhook_id as "webhookId", delivery.origin,
         delivery.class as place, delivery.attempt, delivery.next_at as "dueAt", delivery.created_at as "createdAt",
         event.id as "eventId", event.type as "eventType", event.sequence, event.body,
         (select rewrites from team where team.id = ?1) as rewrites, event.trace
  from json_each(?3) wanted
  cross join delivery on delivery.team_id = ?1 and delivery.id = wanted.value
  cross join event on event.team_id = ?1 and event.sequence = delivery.event_sequence
  where delivery.state = 'waiting'
    and exists (select 1 from webhook where team_id = ?1 and id = ?2 and webhook.state = 'active')
  order by wanted.key`;

export async function load(
  view: View,
  input: Parameters<DeliveryOperations['load']>[0],
): Promise<DueDelivery[]> {
  const { teamId, webhookId, limits, held, first = null } = input;
  const due: string[] = [];
  if (input.ordered) due.push(...(await ids(view, IN_ORDER, teamId, webhookId, limits.live)));
  else {
    for (const [place, name] of DELIVERY_CLASSES.entries())
      if (limits[name] > 0) due.push(...(await ofAClass(view, input, place, limits[name])));
    if (first !== null && !due.includes(first))
      due.push(...(await ids(view, DUE_ONE, teamId, webhookId, first, view.now)));
  }
  const wanted = held === undefined ? due : due.filter((id) => !held.has(id));
  if (wanted.length === 0) return [];
  const rows = await view.db.all<Omit<DueDelivery, 'class'> & { place: number }>(
    BY_ID,
    teamId,
    webhookId,
    wanted,
  );
  return rows.map(({ place, ...one }) => ({ ...one, class: DELIVERY_CLASSES[place] as DeliveryClass }));
}

/** Longest due first; if nothing is due, deliveries dated before the clock was set back. */
async function ofAClass(
  view: View,
  { teamId, webhookId }: LaneName,
  place: number,
  limit: number,
): Promise<string[]> {
  const due = await ids(view, DUE_OF_A_CLASS, teamId, webhookId, place, view.now, limit);
  if (due.length > 0) return due;
  return await ids(view, AHEAD_OF_A_CLASS, teamId, webhookId, place, view.now + LONGEST_WAIT_MS, limit);
}

async function ids(view: View, sql: string, ...values: Value[]): Promise<string[]> {
  const rows = await view.db.all<{ id: string }>(sql, ...values);
  return rows.map(({ id }) => id);
}
