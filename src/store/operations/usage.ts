/**
 * Counts the usage of teams periodically from events and attempts. If every job updated a counter instead, transactions
 * would compete for the counter's row and, on PostgreSQL, each update would leave a dead row, which is slow during a
 * long transaction. Measured on SQLite: 30,000 events and attempts are counted in a second.
 */

import type { Attempt } from '../../model/delivery.ts';
import type { EventType } from '../../model/event.ts';
import type { RecordCounts } from '../../model/job.ts';
import {
  addUsage,
  attemptUsage,
  noUsage,
  periodStart,
  USAGE_PERIODS,
  type UsageCounts,
  type UsageKind,
  type UsagePeriod,
} from '../../model/usage.ts';
import { type ColumnType, deletion, insertAll } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { RETIRED_SLUGS } from './teams.ts';

/** Selects usage by hours or days that start at `from` or later and before `until`. */
export interface UsageQuery {
  teamId: string;
  kind: UsageKind;
  /** The id of the workflow or webhook; '' selects the whole team. */
  subject: string;
  period: UsagePeriod;
  from: number;
  until: number;
}

/**
 * The name in the table `instance` under which the time is stored up to which attempts have been counted, in epoch
 * milliseconds.
 */
const COUNTED_UNTIL = 'usage_counted_until';

// The statements in this file are written so that only one query plan is possible. Otherwise a planner might read all
// events, deliveries or counts to find a few. A team's events are counted in the order of their sequences, not of their
// dates. The lock keeps a team from being retired before the commit, because rows written after the team's deletion
// would remain.
const TEAMS_BEHIND = `
  select team.id as "teamId", coalesce(place.sequence, 0) as sequence
  from team left join usage_place place on place.team_id = team.id
  where team.slug not like '${RETIRED_SLUGS}'
    and coalesce(place.sequence, 0) <
      (select sequence from event where event.team_id = team.id order by event.sequence desc limit 1)
  order by team.id limit $1 for key share of team skip locked`;

/**
 * Counts the events and attempts stored since the last call, about `limit` of them per call; call until `done`.
 * Attempts are stored when they have ended, so an attempt is counted `graceMs` after its start; an attempt stored later
 * than that is not counted. Expired deliveries leave no attempt to count, so `deliveries.expire` adds them to the
 * counts itself.
 */
export async function count(
  tx: Tx,
  { graceMs, limit }: { graceMs: number; limit: number },
): Promise<{ done: boolean }> {
  const before = await lockUsage(tx);
  const tally = new UsageTally();
  const room = await countEvents(tx, tally, limit);
  // Events are counted before attempts. When attempts have been counted up to some time, events up to that time are
  // counted as well.
  const done = room > 0 && (await countAttempts(tx, tally, { before, graceMs, limit: room }));
  await writeUsage(tx, tally.rows);
  return { done };
}

/** Returns how many more rows this step may count. */
async function countEvents(tx: Tx, tally: UsageTally, limit: number): Promise<number> {
  let room = limit;
  for (const team of await tx.db.all<{ teamId: string; sequence: number }>(TEAMS_BEHIND, limit)) {
    const events = await tx.db.all<CountedEvent>`
      select sequence, type, workflow_id as "workflowId", created_at as "createdAt",
             case when type = 'workflow_finished' then body end as body
      from event where team_id = ${team.teamId} and sequence > ${team.sequence} order by sequence limit ${room}`;
    for (const event of events) tally.addEvent(team.teamId, event);
    await tx.db.run`
      insert into usage_place (team_id, sequence)
      values (${team.teamId}, ${events.at(-1)?.sequence ?? team.sequence})
      on conflict (team_id) do update set sequence = excluded.sequence`;
    room -= events.length;
    if (room <= 0) break;
  }
  return room;
}

/** Returns whether all were counted. */
async function countAttempts(
  tx: Tx,
  tally: UsageTally,
  { before, graceMs, limit }: { before: number; graceMs: number; limit: number },
): Promise<boolean> {
  const end = tx.now - graceMs;
  if (before >= end && before <= tx.now) return true;
  // If the stored time is in the future, it was stored before the clock was set back.
  const from = Math.min(before, end);
  const last = await tx.db.get<{ at: number }>`
    select started_at as at from attempt /* use attempt_age */
    where started_at > ${from} and started_at <= ${end} order by started_at limit 1 offset ${limit - 1}`;
  const until = last?.at ?? end;
  const attempts = await tx.db.all<CountedAttempt>`
    select team_id as "teamId", number, started_at as "startedAt", duration_ms as "durationMs", outcome, status,
           (select webhook_id from delivery
            where delivery.team_id = attempt.team_id and delivery.id = attempt.delivery_id) as "webhookId"
    from attempt /* use attempt_age */ where started_at > ${from} and started_at <= ${until} order by started_at`;
  for (const attempt of attempts) tally.addAttempt(attempt);
  await tx.db.run`update instance set value = ${String(until)} where name = ${COUNTED_UNTIL}`;
  return last === undefined;
}

/** Locks counting until the commit, and returns the time up to which attempts have been counted. */
async function lockUsage(tx: Tx): Promise<number> {
  await tx.db.run`
    insert into instance (name, value) values (${COUNTED_UNTIL}, '0') on conflict (name) do nothing`;
  const row = await tx.db.get<{ value: string }>`
    select value from instance where name = ${COUNTED_UNTIL} for update`;
  return Number(row?.value ?? 0);
}

const COUNTS = {
  team_id: 'text',
  kind: 'text',
  subject: 'text',
  period: 'text',
  start: 'bigint',
  counts: 'text',
} satisfies Record<string, ColumnType>;

/** Adds counts to the stored counts of the same hours and days. Leaves out teams that are being deleted. */
export async function writeUsage(tx: Tx, rows: readonly UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await lockUsage(tx);
  const inUse = await tx.db.all<{ id: string }>`
    select id from team where id = any(${[...new Set(rows.map(({ teamId }) => teamId))]}::text[])
      and slug not like ${RETIRED_SLUGS} order by id for key share`;
  const teams = new Set(inUse.map(({ id }) => id));
  const sums = rows
    .filter(({ teamId }) => teams.has(teamId))
    .map(async ({ teamId, kind, subject, period, start, counts }) => {
      const before = await tx.db.get<{ counts: string }>`
        select counts from usage where team_id = ${teamId} and kind = ${kind} and subject = ${subject}
          and period = ${period} and start = ${start} limit 1`;
      const sum = noUsage();
      if (before !== undefined) addUsage(sum, JSON.parse(before.counts));
      addUsage(sum, counts);
      return [teamId, kind, subject, period, start, JSON.stringify(sum)];
    });
  await insertAll(
    tx.db,
    'usage',
    COUNTS,
    await Promise.all(sums),
    'on conflict (team_id, kind, subject, period, start) do update set counts = excluded.counts',
  );
}

/**
 * Returns the counts by period, oldest first. Periods without usage are left out. The counts are complete up to
 * `countedUntil`.
 */
export async function read(
  view: View,
  { teamId, kind, subject, period, from, until }: UsageQuery,
): Promise<{ countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] }> {
  const [counted, rows] = await Promise.all([
    view.db.get<{ value: string }>`select value from instance where name = ${COUNTED_UNTIL}`,
    view.db.all<{ start: number; counts: string }>`
      select start, counts from usage
      where team_id = ${teamId} and kind = ${kind} and subject = ${subject} and period = ${period}
        and start >= ${from} and start < ${until}
      order by start`,
  ]);
  return {
    countedUntil: Number(counted?.value ?? 0),
    periods: rows.map(({ start, counts }) => ({ start, ...JSON.parse(counts) })),
  };
}

const OLD = deletion({
  table: 'usage',
  key: 'team_id, kind, subject, period, start',
  first: 'where period = $1 and start < $2 order by start limit $3',
  index: 'usage_age',
});

/** Deletes counts of old hours and days, at most `limit` of each per call; call until `done`. */
export async function prune(
  tx: Tx,
  { hoursMs, daysMs, limit }: { hoursMs: number; daysMs: number; limit: number },
): Promise<{ done: boolean }> {
  const pruned = await Promise.all([
    tx.db.run(OLD, 'hour', tx.now - hoursMs, limit),
    tx.db.run(OLD, 'day', tx.now - daysMs, limit),
  ]);
  return { done: pruned.every((rows) => rows < limit) };
}

/** An event to count. `body` is set only for `workflow_finished`, whose body contains the number of changed records. */
interface CountedEvent {
  sequence: number;
  type: EventType;
  workflowId: string | null;
  body: string | null;
  createdAt: number;
}

/** An attempt to count. `webhookId` is null if the delivery has been deleted. */
interface CountedAttempt extends Pick<Attempt, 'startedAt' | 'durationMs' | 'outcome' | 'status'> {
  teamId: string;
  webhookId: string | null;
  number: number;
}

interface UsageRow {
  teamId: string;
  kind: UsageKind;
  subject: string;
  period: UsagePeriod;
  start: number;
  counts: UsageCounts;
}

/** Sums up events and attempts. Each sum becomes one row of the table `usage`. */
export class UsageTally {
  readonly #rows = new Map<string, UsageRow>();

  get rows(): UsageRow[] {
    return [...this.#rows.values()];
  }

  addEvent(teamId: string, event: CountedEvent): void {
    const { workflowId, createdAt: at } = event;
    const counts = eventUsage(event);
    if (counts === undefined) return;
    this.#add({ teamId, kind: 'team', subject: '', at }, counts);
    if (workflowId !== null) this.#add({ teamId, kind: 'workflow', subject: workflowId, at }, counts);
  }

  addAttempt({ teamId, webhookId, startedAt: at, ...attempt }: CountedAttempt): void {
    this.addDeliveries({ teamId, webhookId, at }, attemptUsage(attempt));
  }

  addDeliveries(
    { teamId, webhookId, at }: { teamId: string; webhookId: string | null; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    this.#add({ teamId, kind: 'team', subject: '', at }, counts);
    if (webhookId !== null) this.#add({ teamId, kind: 'webhook', subject: webhookId, at }, counts);
  }

  #add(
    { at, ...whose }: { teamId: string; kind: UsageKind; subject: string; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    for (const period of USAGE_PERIODS) {
      const start = periodStart(period, at);
      const key = JSON.stringify([whose.teamId, whose.kind, whose.subject, period, start]);
      const row = this.#rows.get(key) ?? { ...whose, period, start, counts: noUsage() };
      addUsage(row.counts, counts);
      this.#rows.set(key, row);
    }
  }
}

function eventUsage({ type, body }: CountedEvent): Partial<UsageCounts> | undefined {
  switch (type) {
    case 'workflow_finished':
      return { finished: 1, ...changedRecords(body) };
    case 'workflow_failed':
      return { failed: 1 };
    case 'workflow_canceled':
      return { canceled: 1 };
    default:
      return undefined;
  }
}

function changedRecords(body: string | null): Partial<UsageCounts> {
  const { data } = JSON.parse(body ?? '{}') as { data?: { records?: RecordCounts } };
  const { added = 0, changed = 0, removed = 0 } = data?.records ?? {};
  return { added, changed, removed };
}
