/** Finds lanes (webhooks with due deliveries), and loads the due deliveries of a lane. */

import {
  DELIVERY_CLASSES,
  type DeliveryClass,
  type DueDelivery,
  LONGEST_WAIT_MS,
} from '../../model/delivery.ts';
import { type DueTeam, dueTeams as teams } from '../operations/agenda.ts';
import type { DueLane } from '../operations/lanes.ts';
import {
  DUE_COLUMNS,
  type DueRow,
  hasDue,
  LANE_COLUMNS,
  LATER,
  type LaneRow,
  replayRuns,
  toDue,
  toLane,
} from '../operations/lanes.ts';
import type { Value } from '../sql.ts';
import type { Store } from '../store.ts';
import type { LaneName, View } from '../transaction.ts';

const COLUMNS = `${LANE_COLUMNS}, 0 as epoch`;
const HAS_DUE = hasDue({ seen: '0', ahead: true }).sqlite;
/** This query is exported so that a test can check its plan. */
export const DUE_OF_NAMED = `
  select ${COLUMNS} from json_each($3) named
  cross join webhook on webhook.team_id = $1 and webhook.id = named.value
  where ${HAS_DUE}`;
const LANE = `select ${COLUMNS} from webhook where webhook.team_id = $1 and webhook.id = $3 and ${HAS_DUE}`;

/** Maximum number of teams per search. */
const MAX_TEAMS = 10_000;

/** The teams whose lanes may be due. */
export function dueTeams(view: View): Promise<DueTeam[]> {
  const { now } = view;
  return teams(view, { item: 'lanes', until: now, beyond: now + LONGEST_WAIT_MS, limit: MAX_TEAMS });
}

/** Those of a team's webhooks that have due deliveries. */
export async function dueLanes(
  view: View,
  { teamId, webhookIds }: { teamId: string; webhookIds: readonly string[] },
): Promise<DueLane[]> {
  const rows = await view.db.all<LaneRow<DueLane>>(DUE_OF_NAMED, teamId, view.now, [...webhookIds]);
  return rows.map((row) => toLane(row));
}

export async function lane(view: View, { teamId, webhookId }: LaneName): Promise<DueLane | undefined> {
  const row = await view.db.get<LaneRow<DueLane>>(LANE, teamId, view.now, webhookId);
  return row && toLane(row);
}

// Only ids are read at first, from indexes. The sender may already have most of these deliveries, and need not read
// their events again.
const OF_A_LANE = `state = 'waiting' and team_id = $1 and webhook_id = $2`;
const dueOfAClass = (isDue: string) => `
  select id from delivery indexed by delivery_due
  where ${OF_A_LANE} and class > 0 and class = $3 and next_at ${isDue} order by next_at, id limit $5`;
const LATER_WAITS = `select id from delivery indexed by delivery_due where ${OF_A_LANE} and class > 0 limit 1`;
const DUE_ONE = `select id from delivery where ${OF_A_LANE} and id = $3 and next_at <= $4`;
const DUE_OF_A_CLASS = dueOfAClass('<= $4');
const AHEAD_OF_A_CLASS = dueOfAClass('> $4');
const ofOrder = (place: number) => `
  select id, event_sequence from delivery indexed by delivery_order
  where ${OF_A_LANE} and event_sequence > 0 and class = ${place} order by event_sequence, id limit $3`;
const LIVE = ofOrder(0);
const IN_ORDER = `
  select id from (${DELIVERY_CLASSES.map((_, place) => `select * from (${ofOrder(place)})`).join(' union all ')})
  where ${replayRuns('$1', '$2')} is null
  order by event_sequence, id limit $3`;
const BY_ID = `
  select ${DUE_COLUMNS}
  from json_each($3) wanted
  cross join delivery due on due.team_id = $1 and due.id = wanted.value
  cross join event on event.team_id = $1 and event.sequence = due.event_sequence
  where due.state = 'waiting'
    and exists (select 1 from webhook where team_id = $1 and id = $2 and webhook.state = 'active')
  order by wanted.key`;

export async function load(
  view: View,
  input: Parameters<Store['deliveries']['load']>[0],
): Promise<DueDelivery[]> {
  const { teamId, webhookId, ordered, held, first = null } = input;
  const found = await idsOf(view, input);
  if (first !== null && !ordered && !found.includes(first))
    found.push(...(await ids(view, DUE_ONE, teamId, webhookId, first, view.now)));
  const wanted = held === undefined ? found : found.filter((id) => !held.has(id));
  if (wanted.length === 0) return [];
  const rows = await view.db.all<DueRow>(BY_ID, teamId, webhookId, wanted);
  if (ordered) return rows.map(toDue);
  // New deliveries are due, unless they were stored before the clock was set back. If no new delivery is due, the ones
  // dated far ahead are returned.
  const isDue = ({ place, dueAt }: DueRow) => place > 0 || dueAt <= view.now;
  const hasLive = rows.some(({ place, dueAt }) => place === 0 && dueAt <= view.now);
  return rows.filter((row) => isDue(row) || (!hasLive && row.dueAt > view.now + LONGEST_WAIT_MS)).map(toDue);
}

/** Returns new deliveries by sequence number, followed by retries and replays by due time. */
async function idsOf(view: View, input: Parameters<Store['deliveries']['load']>[0]): Promise<string[]> {
  const { teamId, webhookId, limits, ordered } = input;
  if (ordered) return ids(view, IN_ORDER, teamId, webhookId, limits.live);
  const found = limits.live > 0 ? await ids(view, LIVE, teamId, webhookId, limits.live) : [];
  // Most lanes have no retries and replays, whose searches would take four statements.
  if ((await ids(view, LATER_WAITS, teamId, webhookId)).length === 0) return found;
  for (const place of LATER) {
    const limit = limits[DELIVERY_CLASSES[place] as DeliveryClass];
    if (limit > 0) found.push(...(await dueLater(view, input, place, limit)));
  }
  return found;
}

/** Returns due retries or replays. If none is due, returns the ones that were stored before the clock was set back. */
async function dueLater(
  view: View,
  { teamId, webhookId }: LaneName,
  place: number,
  limit: number,
): Promise<string[]> {
  const due = await ids(view, DUE_OF_A_CLASS, teamId, webhookId, place, view.now, limit);
  if (due.length > 0) return due;
  return ids(view, AHEAD_OF_A_CLASS, teamId, webhookId, place, view.now + LONGEST_WAIT_MS, limit);
}

async function ids(view: View, sql: string, ...values: Value[]): Promise<string[]> {
  const rows = await view.db.all<{ id: string }>(sql, ...values);
  return rows.map(({ id }) => id);
}
