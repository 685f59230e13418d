/** When a schedule is due: cron in a time zone, or every so often. */
import { Cron } from 'croner';
import type { Schedule } from './workflow.ts';

/** With `missed: skip` a run may still start this long after its time; and by how much clocks may differ. */
export const TOLERANCE_MS = 60_000;

/**
 * The first time after `afterMs` at which it is due, in epoch milliseconds; null when there is none any more.
 *
 * `every` counts from 1970 (UTC), so that nodes agree. When clocks are put forward, a cron time that is left out
 * is due at the end of the gap; when they are put back, a time of day that comes twice is due the first time only.
 */
export function nextRunAt(schedule: Schedule, afterMs: number): number | null {
  if ('everyMs' in schedule) return (Math.floor(afterMs / schedule.everyMs) + 1) * schedule.everyMs;
  const next = new Cron(schedule.cron, { timezone: schedule.timezone }).nextRun(new Date(afterMs));
  return next === null ? null : next.getTime();
}

/** When a schedule is first due, in epoch milliseconds; null without one. */
export function firstRunAt({ schedule }: { schedule: Schedule | null }, now: number): number | null {
  return schedule === null ? null : nextRunAt(schedule, now);
}

/**
 * The time at which a schedule should be due instead of `dueAt`, because the clock was ahead of `nowMs` when that was
 * computed; undefined when `dueAt` is right. The clocks of several nodes may differ by less than a minute.
 */
export function broughtBack(
  schedule: Schedule,
  { dueAt, nowMs }: { dueAt: number; nowMs: number },
): number | undefined {
  const latest = nextRunAt(schedule, nowMs + TOLERANCE_MS);
  return latest !== null && latest < dueAt ? (nextRunAt(schedule, nowMs) ?? undefined) : undefined;
}

/**
 * Whether a schedule that was due at `dueAt` starts a run now. Late ones do with `missed: run`, one for however
 * many were missed; with `skip` only if it was due, the last time, within the last minute.
 */
export function startsRun(schedule: Schedule, { dueAt, nowMs }: { dueAt: number; nowMs: number }): boolean {
  if (schedule.missed === 'run' || nowMs - dueAt <= TOLERANCE_MS) return true;
  const lastChance = nextRunAt(schedule, nowMs - TOLERANCE_MS - 1);
  return lastChance !== null && lastChance <= nowMs;
}

/** What is wrong with a cron expression or its time zone, as the predicate of a sentence about the field; or undefined. */
export function checkSchedule(cron: string, timezone: string): string | undefined {
  if (!isTimezone(timezone)) return `must be a time zone such as Europe/Berlin or UTC, found "${timezone}"`;
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 && !cron.trim().startsWith('@')) {
    return (
      'must be five fields (minute, hour, day of the month, month, day of the week) such as "0 6 * * 1-5", ' +
      `found "${cron}"${fields.length > 5 ? ': seconds and years have no place here' : ''}`
    );
  }
  let due: number | null;
  try {
    due = nextRunAt({ cron, timezone, missed: 'run' }, Date.UTC(2000, 0, 1));
  } catch (error) {
    const why = (error as Error).message.replace(/^\w+: /, '');
    return `must be a cron expression such as "0 6 * * 1-5", found "${cron}": ${why}`;
  }
  return due === null ? `must come true some day, but "${cron}" never does` : undefined;
}

function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
