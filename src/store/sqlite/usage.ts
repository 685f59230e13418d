/**
 * Usage statistics: aggregated periodically from events and attempts, because a row of counters that every job and
 * delivery updates would be the hottest row of all. Measured: 30,000 events and attempts are counted in a second.
 */
import { addUsage, noUsage, type UsageCounts } from '../../model/usage.ts';
import { RETIRED } from '../team-tables.ts';
import type { UsageOperations, UsageQuery } from '../usage-operations.ts';
import {
  COUNTED_UNTIL,
  type CountedAttempt,
  type CountedEvent,
  type UsageRow,
  UsageTally,
} from '../usage-tally.ts';
import type { Tx, View } from './transaction.ts';

type Input<Name extends keyof UsageOperations> = Parameters<UsageOperations[Name]>[0];

const OF_A_TEAM_IN_USE = `team.slug not like '${RETIRED}%'`;

// A team's events are counted in the order of their sequence, whatever their times are.
const TEAMS_BEHIND = `
  select team.id as teamId, coalesce(place.sequence, 0) as sequence
  from team left join usage_place place on place.team_id = team.id
  where ${OF_A_TEAM_IN_USE}
    and exists (select 1 from event where event.team_id = team.id and event.sequence > coalesce(place.sequence, 0))
  order by team.id limit ?`;
const EVENTS = `
  select sequence, type, workflow_id as workflowId, created_at as createdAt,
         iif(type = 'workflow_finished', body, null) as body
  from event where team_id = ? and sequence > ? order by sequence limit ?`;
const LAST_OF_A_STEP = `
  select started_at as at from attempt indexed by attempt_age
  where started_at > ? and started_at <= ? order by started_at limit 1 offset ?`;
const ATTEMPTS = `
  select attempt.team_id as teamId, delivery.webhook_id as webhookId, number, started_at as startedAt,
         duration_ms as durationMs, outcome, status
  from attempt indexed by attempt_age
  join team on team.id = attempt.team_id and ${OF_A_TEAM_IN_USE}
  left join delivery on delivery.team_id = attempt.team_id and delivery.id = attempt.delivery_id
  where started_at > ? and started_at <= ?`;

export function count(tx: Tx, { graceMs, limit }: Input<'count'>): { done: boolean } {
  const tally = new UsageTally();
  const room = countEvents(tx, tally, limit);
  // Attempts come last, so that when they are counted up to some time, events are too.
  const done = room > 0 && countAttempts(tx, tally, { graceMs, limit: room });
  writeUsage(tx, tally.rows);
  return { done };
}

/** Returns how many more may be counted in this call. */
function countEvents(tx: Tx, tally: UsageTally, limit: number): number {
  let room = limit;
  for (const team of tx.db.all<{ teamId: string; sequence: number }>(TEAMS_BEHIND, limit)) {
    const events = tx.db.all<CountedEvent>(EVENTS, team.teamId, team.sequence, room);
    for (const event of events) tally.addEvent(team.teamId, event);
    tx.db.run(
      `insert into usage_place (team_id, sequence) values (?, ?)
       on conflict (team_id) do update set sequence = excluded.sequence`,
      team.teamId,
      events.at(-1)?.sequence ?? team.sequence,
    );
    room -= events.length;
    if (room <= 0) break;
  }
  return room;
}

/** Returns whether none are left. */
function countAttempts(tx: Tx, tally: UsageTally, input: { graceMs: number; limit: number }): boolean {
  const end = tx.now - input.graceMs;
  const before = countedUntil(tx);
  if (before >= end && before <= tx.now) return true;
  // A time in the future was stored before the clock was set back.
  const from = Math.min(before, end);
  const last = tx.db.get<{ at: number }>(LAST_OF_A_STEP, from, end, input.limit - 1);
  const until = last?.at ?? end;
  for (const attempt of tx.db.all<CountedAttempt>(ATTEMPTS, from, until)) tally.addAttempt(attempt);
  tx.db.run(
    `insert into instance (name, value) values (?, ?) on conflict (name) do update set value = excluded.value`,
    COUNTED_UNTIL,
    String(until),
  );
  return last === undefined;
}

function countedUntil({ db }: View): number {
  const row = db.get<{ value: string }>('select value from instance where name = ?', COUNTED_UNTIL);
  return Number(row?.value ?? 0);
}

const SAME = 'team_id = ? and kind = ? and subject = ? and period = ?';

/** Adds counts to the stored rows of the same hours and days. */
export function writeUsage(tx: Tx, rows: readonly UsageRow[]): void {
  for (const { teamId, kind, subject, period, start, counts } of rows) {
    const key = [teamId, kind, subject, period, start] as const;
    const before = tx.db.get<{ counts: string }>(
      `select counts from usage where ${SAME} and start = ?`,
      ...key,
    );
    const sum = noUsage();
    if (before !== undefined) addUsage(sum, JSON.parse(before.counts));
    addUsage(sum, counts);
    tx.db.run(
      `insert into usage (team_id, kind, subject, period, start, counts) values (?, ?, ?, ?, ?, ?)
       on conflict (team_id, kind, subject, period, start) do update set counts = excluded.counts`,
      ...key,
      JSON.stringify(sum),
    );
  }
}

export function read(
  view: View,
  { teamId, kind, subject, period, from, until }: UsageQuery,
): { countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] } {
  const rows = view.db.all<{ start: number; counts: string }>(
    `select start, counts from usage where ${SAME} and start >= ? and start < ? order by start`,
    teamId,
    kind,
    subject,
    period,
    from,
    until,
  );
  return {
    countedUntil: countedUntil(view),
    periods: rows.map(({ start, counts }) => ({ start, ...JSON.parse(counts) })),
  };
}

export function prune(tx: Tx, { hoursMs, daysMs, limit }: Input<'prune'>): { done: boolean } {
  const pruned = [pruneOf(tx, 'hour', hoursMs, limit), pruneOf(tx, 'day', daysMs, limit)];
  return { done: pruned.every((rows) => rows < limit) };
}

function pruneOf(tx: Tx, period: string, keepMs: number, limit: number): number {
  return tx.db.run(
    `delete from usage where (team_id, kind, subject, period, start) in
       (select team_id, kind, subject, period, start from usage indexed by usage_age
        where period = ? and start < ? order by start limit ?)`,
    period,
    tx.now - keepMs,
    limit,
  );
}
