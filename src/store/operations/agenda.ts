/**
 * The agenda says when something of a team is next due: a job to start, a delivery to send, usage to count, old rows to
 * delete, an event to be judged by the rule of a webhook, a workflow to become stale. A search for such work asks for the
 * teams that are due, and then works on one team at a time. The cost depends on the teams that have work, not on the
 * number of teams.
 *
 *     commit that makes work due ──lowers──▶ jobs_at, lanes_at, … of the team's row ◀──raises── worker that found no more
 *
 * The times are in columns of the team's row, because every commit with an event locks that row anyway. A time may be
 * too early, which costs one search, but never too late. So it is raised only under the lock of the row, to what a
 * statement finds after the lock was taken.
 */

import { USAGE_GRACE_MS } from '../../model/usage.ts';
import { type Agenda, type AgendaItem, noteLane, noteTeam, type Tx, type View } from '../transaction.ts';

/** What can be due, with its column. */
const COLUMNS: Record<AgendaItem, string> = {
  jobs: 'jobs_at',
  lanes: 'lanes_at',
  usage: 'usage_at',
  prune: 'prune_at',
  decisions: 'decisions_at',
  fresh: 'fresh_at',
};
const ITEMS = Object.keys(COLUMNS) as AgendaItem[];

/** A team with something to do, and since when, in epoch milliseconds. */
export interface DueTeam {
  teamId: string;
  at: number;
}

/** The agenda in a statement's list of columns, for `Agenda`. */
export const AGENDA = ITEMS.map((item) => `${COLUMNS[item]} as ${item}`).join(', ');

/**
 * Old rows are deleted some time after a team has written events: a workflow keeps a limited number of jobs. Each visit
 * takes about 1 ms, so a team that is always active is not visited more often.
 */
export const PRUNE_AFTER_MS = 5 * 60_000;
/** A team with anything that may become old is visited after a day, or earlier. */
export const VISIT_MS = 24 * 3_600_000;

/** A time is raised only if it is this old. The row of an active team is therefore rarely written. */
export const RAISE_AFTER_MS = 10_000;

/** Makes an item of a team due at `at` or earlier. It is written at the end of the transaction. */
export function makeDue({ dues }: Pick<Tx, 'dues'>, teamId: string, item: AgendaItem, at: number): void {
  const due = dues.get(teamId) ?? {};
  dues.set(teamId, due);
  due[item] = Math.min(due[item] ?? at, at);
}

/** Makes a job of a team due at `at`, and wakes those who wait for jobs. */
export function touchJobs(tx: Tx, teamId: string, at: number): void {
  makeDue(tx, teamId, 'jobs', at);
  noteTeam(tx.touched, teamId);
}

/** Reports that a webhook has due deliveries, or that nodes must reload the webhook. */
export function touchLane(tx: Tx, teamId: string, webhookId: string): void {
  touchDeliveries(tx, teamId);
  noteLane(tx.touched, teamId, webhookId);
}

/** Like `touchLane`, but for all webhooks of a team. */
export function touchAllLanes(tx: Tx, teamId: string): void {
  touchDeliveries(tx, teamId);
  Object.assign(tx.touched, { deliveries: true, lanes: null });
}

/** Due deliveries lead to attempts, which are counted. */
function touchDeliveries(tx: Tx, teamId: string): void {
  makeDue(tx, teamId, 'lanes', tx.now);
  makeDue(tx, teamId, 'usage', tx.now + USAGE_GRACE_MS);
}

/** Makes decisions of a team due at `at`, and wakes those who make them. */
export function touchDecisions(tx: Tx, teamId: string, at: number): void {
  makeDue(tx, teamId, 'decisions', at);
  tx.touched.decisions = true;
}

/** What an event of a team makes due, besides what its deliveries and its job do. */
export function afterEvents(tx: Tx, teamId: string): void {
  makeDue(tx, teamId, 'usage', tx.now);
  makeDue(tx, teamId, 'prune', tx.now + PRUNE_AFTER_MS);
}

/**
 * Writes what the transaction has made due for a team whose row is locked. `known` is the team's agenda, read under the
 * lock. Nearly always the agenda is early enough already, and nothing is written.
 */
export async function lowerAgenda(tx: Tx, teamId: string, known: Agenda): Promise<void> {
  const due = tx.dues.get(teamId) ?? {};
  tx.dues.delete(teamId);
  const earlier = ITEMS.filter((item) => {
    const [at, knownAt] = [due[item], known[item]];
    return at != null && (knownAt == null || knownAt > at);
  });
  if (earlier.length === 0) return;
  const sets = earlier.map((item, place) => `${COLUMNS[item]} = $${place + 2}`);
  await tx.db.run(
    `update team set ${sets.join(', ')} where id = $1`,
    teamId,
    ...earlier.map((item) => due[item] as number),
  );
}

/** Writes what the transaction has made due for a team without events. Locks the team's row. */
export async function writeDues(tx: Tx, teamId: string): Promise<void> {
  const due = tx.dues.get(teamId) ?? {};
  tx.dues.delete(teamId);
  // These are two statements, because the second must see what was committed before the first got its lock.
  await Promise.all([
    tx.db.lock('select 1 from team where id = $1 for no key update', teamId),
    tx.db.run(LOWER, teamId, ...ITEMS.map((item) => due[item] ?? null)),
  ]);
}

// Without a new time, a column keeps its value. `least` ignores null on PostgreSQL, and SQLite's `min` does not.
const LOWER = `
  update team set ${ITEMS.map((item, at) => {
    const [column, value] = [COLUMNS[item], `$${at + 2}::bigint`];
    return `${column} = case when ${value} < ${column} or ${column} is null then coalesce(${value}, ${column}) else ${column} end`;
  }).join(', ')}
  where id = $1 and (${ITEMS.map((item, at) => `$${at + 2}::bigint < coalesce(${COLUMNS[item]}, $${at + 2}::bigint + 1)`).join(' or ')})`;

/**
 * Lists teams whose item is due by `until`, the longest due first, and then teams whose item is due after `beyond`
 * (default: none). Lists at most `limit` of each. Reads only the index of the item. With `after`, the first list begins
 * after that time.
 */
export function dueTeams(
  view: View,
  { item, after = -1, until, beyond = Number.MAX_SAFE_INTEGER, limit }: DueInput,
): Promise<DueTeam[]> {
  return view.db.all<DueTeam>(DUE[item], until, beyond, limit, after);
}

interface DueInput {
  item: AgendaItem;
  after?: number;
  until: number;
  beyond?: number;
  limit: number;
}

const dated = (item: AgendaItem, condition: string) => `
  select * from (
    select id as "teamId", ${COLUMNS[item]} as at from team /* use team_${item} */
    where ${COLUMNS[item]} ${condition} order by ${COLUMNS[item]} limit $3
  ) as dated`;
const DUE = Object.fromEntries(
  ITEMS.map((item) => [
    item,
    `${dated(item, `<= $1 and ${COLUMNS[item]} > $4`)} union all ${dated(item, '> $2')}`,
  ]),
) as Record<AgendaItem, string>;

/**
 * Raises an item of a team to the time that `next` returns (null: nothing is waiting). `next` runs under the lock of the
 * team's row, and must find all work that is committed. Call this last in a transaction, because the team's row is locked
 * after all others. Returns the new time.
 */
export async function raise(
  tx: Tx,
  { teamId, item }: { teamId: string; item: AgendaItem },
  next: () => Promise<number | null>,
): Promise<number | null> {
  await tx.db.lock('select 1 from team where id = $1 for no key update', teamId);
  const at = await next();
  await tx.db.run(`update team set ${COLUMNS[item]} = $2 where id = $1`, teamId, at);
  return at;
}
