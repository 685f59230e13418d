/** Lanes: the webhooks that have deliveries due, and what is due for one of them. `lane-leases.ts` says whose they are. */
import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DeliveryOrigin,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../../model/delivery.ts';
import type { DueLane, LaneName } from '../webhook-operations.ts';
import type { View } from './transaction.ts';

/**
 * Steps from webhook to webhook through the index `delivery_due`, one seek each. PostgreSQL has no such scan of its
 * own before version 18, and would read the whole backlog. The order is that of the whole index, so that no other one
 * serves: `delivery_history` would lead through all that has ever ended.
 */
export const WAITING_LANES = `
  with recursive waiting_lane (team_id, webhook_id) as (
    (select team_id, webhook_id from delivery where state = 'waiting'
     order by team_id, webhook_id, class, next_at, id limit 1)
    union all
    select next.team_id, next.webhook_id from waiting_lane cross join lateral (
      select d.team_id, d.webhook_id from delivery d
      where d.state = 'waiting' and (d.team_id, d.webhook_id) > (waiting_lane.team_id, waiting_lane.webhook_id)
      order by d.team_id, d.webhook_id, d.class, d.next_at, d.id limit 1
    ) next
  )`;

/** A lane with something due, as it was found: who holds it, if anybody does. */
export interface FoundLane extends DueLane {
  nodeId: string | null;
  /** Epoch milliseconds. */
  leaseUntil: number;
}

interface LaneRow extends Omit<FoundLane, 'secrets' | 'settings'> {
  secret: string;
  previousSecret: string | null;
  settings: string;
}

const COLUMNS = `
  webhook.team_id as "teamId", webhook.id as "webhookId", webhook.url, webhook.secret, webhook.headers,
  webhook.settings, webhook.failing_since as "failingSince",
  case when webhook.previous_until > $1 then webhook.previous_secret end as "previousSecret",
  held.node_id as "nodeId", coalesce(held.epoch, 0) as epoch, coalesce(held.lease_until, 0) as "leaseUntil"`;
// One seek for each class, for only within a class is the first the one that has been due longest; and another one
// for what is dated further ahead than anything waits. Values and not `exists`, for which the planner may choose to
// read all that waits, once for all lanes.
const CLASSES = DELIVERY_CLASSES.map((_, place) => `(${place})`).join(', ');
const someClass = (order: 'asc' | 'desc', isDue: string) => `(
      select true from (values ${CLASSES}) as each (class) cross join lateral (
        select d.next_at from delivery d
        where d.state = 'waiting' and d.team_id = webhook.team_id and d.webhook_id = webhook.id and d.class = each.class
        order by d.next_at ${order}, d.id ${order} limit 1
      ) one where one.next_at ${isDue} limit 1)`;
const HAS_DUE = `
  webhook.state = 'active' and
  case when (webhook.settings::json ->> 'ordered')::boolean then
    (select d.next_at from delivery d
     where d.state = 'waiting' and d.event_sequence > 0
       and d.team_id = webhook.team_id and d.webhook_id = webhook.id
     order by d.event_sequence, d.id limit 1) not between $1 + 1 and $1 + ${LONGEST_WAIT_MS}
  else coalesce(${someClass('asc', '<= $1')}, ${someClass('desc', `> $1 + ${LONGEST_WAIT_MS}`)}, false)
  end`;
const IS_FREE = '(held.node_id is null or held.node_id = $2 or held.lease_until <= $1)';
// What others hold is left out before anything is asked of it.
/** Exported so that a test can ask how it is carried out. */
export const LANES = `
  ${WAITING_LANES},
  held as materialized (
    select waiting_lane.team_id, waiting_lane.webhook_id, held.node_id, held.epoch, held.lease_until
    from waiting_lane
    left join lane held on held.team_id = waiting_lane.team_id and held.webhook_id = waiting_lane.webhook_id
    where ${IS_FREE}
  )
  select ${COLUMNS} from held
  join webhook on webhook.team_id = held.team_id and webhook.id = held.webhook_id
  where ${HAS_DUE}`;
const LANE = `
  select ${COLUMNS} from webhook
  left join lane held on held.team_id = webhook.team_id and held.webhook_id = webhook.id
  where webhook.team_id = $3 and webhook.id = $4 and ${IS_FREE} and ${HAS_DUE}`;

/** Those that a node holds or could take. */
export async function lanes(view: View, { nodeId }: { nodeId: string }): Promise<FoundLane[]> {
  return (await view.db.all<LaneRow>(LANES, view.now, nodeId)).map(toLane);
}

export async function lane(
  view: View,
  { teamId, webhookId, nodeId }: LaneName & { nodeId: string },
): Promise<FoundLane | undefined> {
  const row = await view.db.get<LaneRow>(LANE, view.now, nodeId, teamId, webhookId);
  return row && toLane(row);
}

function toLane({ secret, previousSecret, settings, ...lane }: LaneRow): FoundLane {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret];
  return { ...lane, secrets, settings: JSON.parse(settings) };
}

interface DueRow extends Omit<DueDelivery, 'class' | 'origin'> {
  class: number;
  origin: DeliveryOrigin;
}

const DUE_COLUMNS = `
  due.team_id as "teamId", due.id, due.webhook_id as "webhookId", due.origin, due.class, due.attempt,
  due.next_at as "dueAt", due.created_at as "createdAt",
  event.id as "eventId", event.type as "eventType", event.sequence, event.body`;
const WAITING = `select * from delivery where team_id = $1 and webhook_id = $2 and state = 'waiting'`;
// One event for each, and the webhook by its key: so that also a planner that knows nothing of the tables yet walks
// through no other's.
const WITH_EVENT_IF_ACTIVE = `
  cross join lateral (
    select id, type, sequence, body from event
    where event.team_id = due.team_id and event.sequence = due.event_sequence limit 1
  ) event
  where (select state from webhook where team_id = $1 and id = $2) = 'active'`;
const PLACES = DELIVERY_CLASSES.map((_, place) => place);
// Of each class the first ones; where nothing is due, what was dated before the clock was set back.
const DUE = `
  with wanted (class, most) as (values ${PLACES.map((place) => `(${place}, $${5 + place}::integer)`).join(', ')}),
  found as materialized (
    select found.* from wanted cross join lateral (
      ${WAITING} and class = wanted.class and next_at <= $3 order by next_at, id limit wanted.most
    ) found
  )
  select ${DUE_COLUMNS} from (
    select * from found union all
    select ahead.* from wanted cross join lateral (
      ${WAITING} and class = wanted.class and next_at > $4 order by next_at, id limit wanted.most
    ) ahead
    where wanted.class not in (select class from found)
  ) due ${WITH_EVENT_IF_ACTIVE}
  order by due.class, due.next_at, due.id`;
const IN_ORDER = `
  select ${DUE_COLUMNS} from (${WAITING} and event_sequence > 0 order by event_sequence, id limit $3) due ${WITH_EVENT_IF_ACTIVE}
  order by due.event_sequence, due.id`;

export async function load(
  view: View,
  input: LaneName & { limits: Record<DeliveryClass, number>; ordered: boolean },
): Promise<DueDelivery[]> {
  const { teamId, webhookId, limits } = input;
  const rows = input.ordered
    ? await view.db.all<DueRow>(IN_ORDER, teamId, webhookId, limits.live)
    : await view.db.all<DueRow>(
        DUE,
        teamId,
        webhookId,
        view.now,
        view.now + LONGEST_WAIT_MS,
        ...DELIVERY_CLASSES.map((name) => limits[name]),
      );
  return rows.map((row) => ({ ...row, class: DELIVERY_CLASSES[row.class] as DeliveryClass }));
}
