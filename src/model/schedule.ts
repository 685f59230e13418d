/** Computes when a schedule is due: cron in a time zone, or a fixed interval. */
import { Cron } from 'croner';
import { nearest } from '../std/nearest.ts';
import type { Schedule } from './workflow.ts';

/** With `missed: skip`, a run starts if it is at most this late. The clocks of nodes may also differ by this much. */
export const TOLERANCE_MS = 60_000;

/**
 * The first due time after `afterMs`, in epoch milliseconds; null if there is none.
 *
 * Intervals of `every` are counted from 1970 (UTC), so that all nodes compute the same times. A cron time that is
 * skipped when clocks go forward is due at the end of the gap. A cron time that occurs twice when clocks go back is due
 * only the first time.
 */
export function nextRunAt(schedule: Schedule, afterMs: number): number | null {
  if ('everyMs' in schedule) return (Math.floor(afterMs / schedule.everyMs) + 1) * schedule.everyMs;
  const next = new Cron(schedule.cron, { timezone: schedule.timezone }).nextRun(new Date(afterMs));
  return next === null ? null : next.getTime();
}

/** The first due time of a schedule, in epoch milliseconds; null without a schedule. */
export function firstRunAt({ schedule }: { schedule: Schedule | null }, now: number): number | null {
  return schedule === null ? null : nextRunAt(schedule, now);
}

/**
 * The correct due time of a schedule whose `dueAt` was computed while the clock was ahead; undefined if `dueAt` is
 * correct. The clocks of nodes may differ by less than a minute.
 */
export function correctedDueAt(
  schedule: Schedule,
  { dueAt, nowMs }: { dueAt: number; nowMs: number },
): number | undefined {
  const latest = nextRunAt(schedule, nowMs + TOLERANCE_MS);
  return latest !== null && latest < dueAt ? (nextRunAt(schedule, nowMs) ?? undefined) : undefined;
}

/**
 * Whether a schedule that was due at `dueAt` starts a run now. With `missed: run`, a late schedule starts one run,
 * however many runs were missed. With `missed: skip`, it starts a run only if its latest due time was within the last
 * minute.
 */
export function startsRun(schedule: Schedule, { dueAt, nowMs }: { dueAt: number; nowMs: number }): boolean {
  if (schedule.missed === 'run' || nowMs - dueAt <= TOLERANCE_MS) return true;
  const lastChance = nextRunAt(schedule, nowMs - TOLERANCE_MS - 1);
  return lastChance !== null && lastChance <= nowMs;
}

/** Describes an invalid cron expression or time zone, as the predicate of a sentence; undefined if both are valid. */
export function checkSchedule(cron: string, timezone: string): string | undefined {
  const mistake = timeZoneMistake(timezone);
  if (mistake !== undefined) return mistake;
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 && !cron.trim().startsWith('@')) {
    return (
      'must be five fields (minute, hour, day of the month, month, day of the week) such as "0 6 * * 1-5", ' +
      `found "${cron}"${fields.length > 5 ? ': seconds and years are not supported' : ''}`
    );
  }
  let due: number | null;
  try {
    due = nextRunAt({ cron, timezone, missed: 'run' }, Date.UTC(2000, 0, 1));
  } catch (error) {
    const why = (error as Error).message.replace(/^\w+: /, '');
    return `must be a cron expression such as "0 6 * * 1-5", found "${cron}": ${why}`;
  }
  return due === null ? `must match some date, but "${cron}" matches none` : undefined;
}

/** Describes a name that is no time zone, as the predicate of a sentence, with the zone that is probably meant. */
export function timeZoneMistake(name: string): string | undefined {
  if (isTimezone(name)) return undefined;
  const zones = Intl.supportedValuesOf('timeZone');
  const city = name.replaceAll(' ', '_').toLowerCase();
  const meant = zones.find((zone) => zone.toLowerCase().endsWith(`/${city}`)) ?? nearest(name, zones);
  const advice = meant === undefined ? '' : `; did you mean "${meant}"?`;
  return `must be a time zone such as Europe/Berlin or UTC, found "${name}"${advice}`;
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
