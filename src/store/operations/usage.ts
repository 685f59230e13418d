/**
 * Usage of teams, counted periodically from events and attempts. A counter that every job updates would leave a dead row
 * each time, which is slow while somebody holds a transaction open.
 */
import { addUsage, noUsage, type UsageCounts } from '../../model/usage.ts';
import type { Tx, View } from '../sql.ts';
import { RETIRED } from '../team-tables.ts';
import type { UsageQuery } from '../usage-operations.ts';
import {
  COUNTED_UNTIL,
  type CountedAttempt,
  type CountedEvent,
  type UsageRow,
  UsageTally,
} from '../usage-tally.ts';

// These statements leave the planner no choice: it would read all events, deliveries or counts for a few.
// A team's events are counted in the order of their sequence, whatever their dates. The lock keeps a team from being
// retired before the commit: rows written after its deletion would remain.
const TEAMS_BEHIND = `
  select team.id as "teamId", coalesce(place.sequence, 0) as sequence
  from team left join usage_place place on place.team_id = team.id
  cross join lateral (
    select sequence from event
    where event.team_id = team.id and event.sequence > coalesce(place.sequence, 0) order by event.sequence limit 1
  ) next
  where team.slug not like '${RETIRED}%' order by team.id limit $1 for key share of team skip locked`;
const EVENTS = `
  select sequence, type, workflow_id as "workflowId", created_at as "createdAt",
         case when type = 'workflow_finished' then body end as body
  from event where team_id = $1 and sequence > $2 order by sequence limit $3`;
const LAST_OF_A_STEP = `
  select started_at as at from attempt
  where started_at > $1 and started_at <= $2 order by started_at limit 1 offset $3`;
const ATTEMPTS = `
  select team_id as "teamId", number, started_at as "startedAt", duration_ms as "durationMs", outcome, status,
         (select webhook_id from delivery
          where delivery.team_id = attempt.team_id and delivery.id = attempt.delivery_id) as "webhookId"
  from attempt where started_at > $1 and started_at <= $2 order by started_at`;

export async function count(
  tx: Tx,
  { graceMs, limit }: { graceMs: number; limit: number },
): Promise<{ done: boolean }> {
  const before = await lockUsage(tx);
  const tally = new UsageTally();
  const room = await countEvents(tx, tally, limit);
  // Attempts come last: when they are counted up to a time, events are as well.
  const done = room > 0 && (await countAttempts(tx, tally, { before, graceMs, limit: room }));
  await writeUsage(tx, tally.rows);
  return { done };
}

/** Returns how many more may be counted in this step. */
async function countEvents(tx: Tx, tally: UsageTally, limit: number): Promise<number> {
  let room = limit;
  for (const team of await tx.db.all<{ teamId: string; sequence: number }>(TEAMS_BEHIND, limit)) {
    const events = await tx.db.all<CountedEvent>(EVENTS, team.teamId, team.sequence, room);
    for (const event of events) tally.addEvent(team.teamId, event);
    await tx.db.run(
      `insert into usage_place (team_id, sequence) values ($1, $2)
       on conflict (team_id) do update set sequence = excluded.sequence`,
      team.teamId,
      events.at(-1)?.sequence ?? team.sequence,
    );
    room -= events.length;
    if (room <= 0) break;
  }
  return room;
}

/** Returns whether those were all. */
async function countAttempts(
  tx: Tx,
  tally: UsageTally,
  { before, graceMs, limit }: { before: number; graceMs: number; limit: number },
): Promise<boolean> {
  const end = tx.now - graceMs;
  if (before >= end && before <= tx.now) return true;
  // A time in the future was stored before the clock was set back.
  const from = Math.min(before, end);
  const last = await tx.db.get<{ at: number }>(LAST_OF_A_STEP, from, end, limit - 1);
  const until = last?.at ?? end;
  for (const attempt of await tx.db.all<CountedAttempt>(ATTEMPTS, from, until)) tally.addAttempt(attempt);
  await tx.db.run('update instance set value = $2 where name = $1', COUNTED_UNTIL, String(until));
  return last === undefined;
}

/** Locks the counting for this transaction; returns the time up to which attempts are counted. */
async function lockUsage(tx: Tx): Promise<number> {
  await tx.db.run(
    `insert into instance (name, value) values ($1, '0') on conflict (name) do nothing`,
    COUNTED_UNTIL,
  );
  const row = await tx.db.get<{ value: string }>(
    'select value from instance where name = $1 for update',
    COUNTED_UNTIL,
  );
  return Number(row?.value ?? 0);
}

/** Adds to the counts of the same hours and days, except for teams that are being deleted. */
export async function writeUsage(tx: Tx, rows: readonly UsageRow[]): Promise<void> {
  if (rows.length === 0) return;
  await lockUsage(tx);
  const inUse = await tx.db.all<{ id: string }>(
    `select id from team where id = any($1::text[]) and slug not like '${RETIRED}%' order by id for key share`,
    [...new Set(rows.map(({ teamId }) => teamId))],
  );
  const teams = new Set(inUse.map(({ id }) => id));
  const counted = rows.filter(({ teamId }) => teams.has(teamId));
  const key = [
    counted.map(({ teamId }) => teamId),
    counted.map(({ kind }) => kind),
    counted.map(({ subject }) => subject),
    counted.map(({ period }) => period),
    counted.map(({ start }) => start),
  ] as const;
  const before = await tx.db.all<{ place: number; counts: string }>(
    `select new.place, usage.counts
     from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) with ordinality
       as new (team_id, kind, subject, period, start, place)
     cross join lateral (
       select counts from usage
       where usage.team_id = new.team_id and usage.kind = new.kind and usage.subject = new.subject
         and usage.period = new.period and usage.start = new.start
       limit 1
     ) usage`,
    ...key,
  );
  const sums = counted.map(() => noUsage());
  for (const { place, counts } of before) addUsage(sums[place - 1] as UsageCounts, JSON.parse(counts));
  for (const [place, { counts }] of counted.entries()) addUsage(sums[place] as UsageCounts, counts);
  await tx.db.run(
    `insert into usage (team_id, kind, subject, period, start, counts)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[])
     on conflict (team_id, kind, subject, period, start) do update set counts = excluded.counts`,
    ...key,
    sums.map((sum) => JSON.stringify(sum)),
  );
}

export async function read(
  view: View,
  { teamId, kind, subject, period, from, until }: UsageQuery,
): Promise<{ countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] }> {
  const [counted, rows] = await Promise.all([
    view.db.get<{ value: string }>('select value from instance where name = $1', COUNTED_UNTIL),
    view.db.all<{ start: number; counts: string }>(
      `select start, counts from usage
       where team_id = $1 and kind = $2 and subject = $3 and period = $4 and start >= $5 and start < $6
       order by start`,
      teamId,
      kind,
      subject,
      period,
      from,
      until,
    ),
  ]);
  return {
    countedUntil: Number(counted?.value ?? 0),
    periods: rows.map(({ start, counts }) => ({ start, ...JSON.parse(counts) })),
  };
}

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

const OLD = `
  with old as materialized (
    select team_id, kind, subject, period, start from usage where period = $1 and start < $2 order by start limit $3
  )
  delete from usage using old
  where usage.team_id = old.team_id and usage.kind = old.kind and usage.subject = old.subject
    and usage.period = old.period and usage.start = old.start`;
