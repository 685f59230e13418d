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
  USAGE_GRACE_MS,
  USAGE_PERIODS,
  type UsageCounts,
  type UsageKind,
  type UsagePeriod,
} from '../../model/usage.ts';
import { type ColumnType, deletion, insertAll } from '../sql.ts';
import type { Tx, View } from '../transaction.ts';
import { raise } from './agenda.ts';
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

/** Up to where the events and attempts of a team have been counted. */
interface Place {
  sequence: number;
  /** Attempts that started later have not been counted, in epoch milliseconds. */
  attemptsUntil: number;
}

// The statements in this file are written so that only one query plan is possible. Otherwise a planner might read all
// events, deliveries or counts to find a few. A team's events are counted in the order of their sequences, not of their
// dates.

/**
 * Counts the events and attempts that a team has stored since the last call, about `limit` of them per call; call until
 * `done`. Attempts are stored when they have ended, so an attempt is counted `graceMs` after its start; an attempt
 * stored later than that is not counted. Expired deliveries leave no attempt to count, so `deliveries.expire` adds them
 * to the counts itself. When all is counted, the team's usage is next due when there may be more.
 */
export async function count(
  tx: Tx,
  { teamId, graceMs, limit }: { teamId: string; graceMs: number; limit: number },
): Promise<{ done: boolean }> {
  const place = await lockUsage(tx, teamId);
  if (place === undefined) {
    await raise(tx, { teamId, item: 'usage' }, async () => null);
    return { done: true };
  }
  const tally = new UsageTally(teamId);
  const events = await countEvents(tx, tally, place.sequence, limit);
  const sequence = events.at(-1)?.sequence ?? place.sequence;
  const room = limit - events.length;
  // Events are counted before attempts. When attempts have been counted up to some time, events up to that time are
  // counted as well.
  const attempts =
    room > 0
      ? await countAttempts(tx, tally, { before: place.attemptsUntil, graceMs, limit: room })
      : { until: place.attemptsUntil, done: false };
  await addCounts(tx, tally.rows);
  await tx.db.run`
    update usage_place set sequence = ${sequence}, attempts_until = ${attempts.until} where team_id = ${teamId}`;
  if (attempts.done) {
    await raise(tx, { teamId, item: 'usage' }, () =>
      nextAt(tx, { teamId, sequence, attemptsUntil: attempts.until, graceMs }),
    );
  }
  return { done: attempts.done };
}

async function countEvents(tx: Tx, tally: UsageTally, after: number, limit: number): Promise<CountedEvent[]> {
  const events = await tx.db.all<CountedEvent>`
    select sequence, type, workflow_id as "workflowId", created_at as "createdAt",
           case when type = 'workflow_finished' then body end as body
    from event where team_id = ${tally.teamId} and sequence > ${after} order by sequence limit ${limit}`;
  for (const event of events) tally.addEvent(event);
  return events;
}

/** Returns until when attempts are counted now, and whether these were all. */
async function countAttempts(
  tx: Tx,
  tally: UsageTally,
  { before, graceMs, limit }: { before: number; graceMs: number; limit: number },
): Promise<{ until: number; done: boolean }> {
  const end = tx.now - graceMs;
  if (before >= end && before <= tx.now) return { until: before, done: true };
  // If the stored time is in the future, it was stored before the clock was set back.
  const from = Math.min(before, end);
  const { teamId } = tally;
  const last = await tx.db.get<{ at: number }>`
    select started_at as at from attempt /* use attempt_started */
    where team_id = ${teamId} and started_at > ${from} and started_at <= ${end}
    order by started_at limit 1 offset ${limit - 1}`;
  const until = last?.at ?? end;
  const attempts = await tx.db.all<CountedAttempt>`
    select number, started_at as "startedAt", duration_ms as "durationMs", outcome, status,
           (select webhook_id from delivery
            where delivery.team_id = ${teamId} and delivery.id = attempt.delivery_id) as "webhookId"
    from attempt /* use attempt_started */
    where team_id = ${teamId} and started_at > ${from} and started_at <= ${until} order by started_at`;
  for (const attempt of attempts) tally.addAttempt(attempt);
  return { until, done: last === undefined };
}

/**
 * Returns when a team may next have something to count; null if only a new event or a commit that makes deliveries due
 * can change that. While deliveries wait, no attempt starts before the team's lanes are due.
 */
async function nextAt(
  tx: Tx,
  { teamId, sequence, attemptsUntil, graceMs }: Place & { teamId: string; graceMs: number },
): Promise<number | null> {
  const found = await tx.db.get<{
    eventAt: number | null;
    attemptAt: number | null;
    waits: number | null;
    lanesAt: number | null;
  }>`
    select
      (select created_at from event
       where event.team_id = ${teamId} and sequence > ${sequence} order by sequence limit 1) as "eventAt",
      (select started_at from attempt /* use attempt_started */
       where attempt.team_id = ${teamId} and started_at > ${attemptsUntil}
       order by started_at limit 1) as "attemptAt",
      (select 1 from delivery /* use delivery_order */
       where delivery.team_id = ${teamId} and state = 'waiting' and event_sequence > 0
       order by webhook_id, class, event_sequence, id limit 1) as waits,
      lanes_at as "lanesAt"
    from team where id = ${teamId}`;
  if (found === undefined) return null;
  const { eventAt, attemptAt, waits, lanesAt } = found;
  if (eventAt !== null) return tx.now;
  if (attemptAt !== null) return attemptAt + graceMs;
  return waits === null || lanesAt === null ? null : Math.max(tx.now, lanesAt) + graceMs;
}

/**
 * Locks the counts of a team until the commit, and returns up to where they are complete. Returns undefined for a team
 * that is being deleted. The lock also keeps the team from being retired before the commit, because rows written after
 * the team's deletion would remain.
 */
async function lockUsage(tx: Tx, teamId: string): Promise<Place | undefined> {
  const team = await tx.db.get`
    select 1 from team where id = ${teamId} and slug not like ${RETIRED_SLUGS} for key share`;
  if (team === undefined) return undefined;
  await tx.db.run`
    insert into usage_place (team_id, sequence) values (${teamId}, 0) on conflict (team_id) do nothing`;
  return tx.db.get<Place>`
    select sequence, attempts_until as "attemptsUntil" from usage_place where team_id = ${teamId} for update`;
}

const COUNTS = {
  team_id: 'text',
  kind: 'text',
  subject: 'text',
  period: 'text',
  start: 'bigint',
  counts: 'text',
} satisfies Record<string, ColumnType>;

/** Adds dead deliveries of a webhook to the stored counts. All other deliveries are counted by their attempts. */
export async function countDead(
  tx: Tx,
  { teamId, webhookId, dead }: { teamId: string; webhookId: string; dead: number },
): Promise<void> {
  if (dead === 0 || (await lockUsage(tx, teamId)) === undefined) return;
  const tally = new UsageTally(teamId);
  tally.addDeliveries({ webhookId, at: tx.now }, { dead });
  await addCounts(tx, tally.rows);
}

/** Adds counts to the stored counts of the same hours and days. The caller has locked the team's counts. */
async function addCounts(tx: Tx, rows: readonly UsageRow[]): Promise<void> {
  const sums = rows.map(async ({ teamId, kind, subject, period, start, counts }) => {
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
  // The time is read first, so that counts stored in the meantime are not missing.
  const team = await view.db.get<{ dueAt: number | null; attemptsUntil: number | null }>`
    select usage_at as "dueAt", usage_place.attempts_until as "attemptsUntil"
    from team left join usage_place on usage_place.team_id = team.id where team.id = ${teamId}`;
  const rows = await view.db.all<{ start: number; counts: string }>`
    select start, counts from usage
    where team_id = ${teamId} and kind = ${kind} and subject = ${subject} and period = ${period}
      and start >= ${from} and start < ${until}
    order by start`;
  // Before usage is due, everything is counted that the grace period allows.
  const before = Math.min(view.now, team?.dueAt ?? view.now) - USAGE_GRACE_MS;
  return {
    countedUntil: Math.min(view.now, Math.max(before, team?.attemptsUntil ?? 0)),
    periods: rows.map(({ start, counts }) => ({ start, ...JSON.parse(counts) })),
  };
}

const OLD = deletion({
  table: 'usage',
  key: 'team_id, kind, subject, period, start',
  first: 'where team_id = $1 and period = $2 and start < $3 order by start limit $4',
  index: 'usage_start',
});

/** Deletes a team's counts of old hours and days, at most `limit` of each per call; call until `done`. */
export async function prune(
  tx: Tx,
  { teamId, hoursMs, daysMs, limit }: { teamId: string; hoursMs: number; daysMs: number; limit: number },
): Promise<{ done: boolean }> {
  const pruned = await Promise.all([
    tx.db.run(OLD, teamId, 'hour', tx.now - hoursMs, limit),
    tx.db.run(OLD, teamId, 'day', tx.now - daysMs, limit),
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

/** Sums up events and attempts of a team. Each sum becomes one row of the table `usage`. */
class UsageTally {
  readonly teamId: string;
  readonly #rows = new Map<string, UsageRow>();

  constructor(teamId: string) {
    this.teamId = teamId;
  }

  get rows(): UsageRow[] {
    return [...this.#rows.values()];
  }

  addEvent(event: CountedEvent): void {
    const { workflowId, createdAt: at } = event;
    const counts = eventUsage(event);
    if (counts === undefined) return;
    this.#add({ kind: 'team', subject: '', at }, counts);
    if (workflowId !== null) this.#add({ kind: 'workflow', subject: workflowId, at }, counts);
  }

  addAttempt({ webhookId, startedAt: at, ...attempt }: CountedAttempt): void {
    this.addDeliveries({ webhookId, at }, attemptUsage(attempt));
  }

  addDeliveries(
    { webhookId, at }: { webhookId: string | null; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    this.#add({ kind: 'team', subject: '', at }, counts);
    if (webhookId !== null) this.#add({ kind: 'webhook', subject: webhookId, at }, counts);
  }

  #add(
    { at, ...whose }: { kind: UsageKind; subject: string; at: number },
    counts: Partial<UsageCounts>,
  ): void {
    const { teamId } = this;
    for (const period of USAGE_PERIODS) {
      const start = periodStart(period, at);
      const key = JSON.stringify([whose.kind, whose.subject, period, start]);
      const row = this.#rows.get(key) ?? { teamId, ...whose, period, start, counts: noUsage() };
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
