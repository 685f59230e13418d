/** Checks `schedule`: cron in a time zone, or a fixed interval. */
import { checkSchedule as checkCron } from '../model/schedule.ts';
import { MISSED, type Missed, type Schedule } from '../model/workflow.ts';
import { type Checker, describe, isMissing, orDefault } from './check.ts';
import { parseDuration } from './duration.ts';

const PATH = ['schedule'];
const MIN_EVERY_MS = 60_000;
const MAX_EVERY_MS = 366 * 86_400_000;

/**
 * Reads a bare cron expression, `{ cron, timezone, missed }` or `{ every, missed }`.
 *
 * @returns null if the schedule is missing or, with a mistake recorded, wrong
 */
export function checkSchedule(checker: Checker, value: unknown): Schedule | null {
  if (isMissing(value)) return null;
  if (typeof value === 'string') return checkText(checker, value);
  const schedule = checker.map(value, PATH, { known: ['cron', 'timezone', 'every', 'missed'] });
  if (typeof value !== 'object' || Array.isArray(value)) return null;
  const missed = orDefault<Missed>(schedule.missed, 'run', () =>
    checker.oneOf(schedule.missed, [...PATH, 'missed'], MISSED),
  );
  if (isMissing(schedule.cron) === isMissing(schedule.every)) {
    checker.wrong(
      PATH,
      `must hold either \`cron\`, such as { cron: "0 6 * * 1-5", timezone: Europe/Berlin }, or \`every\`, such as { every: 15m }`,
    );
    return null;
  }
  if (isMissing(schedule.every)) return readCron(checker, schedule, missed);
  if (!isMissing(schedule.timezone)) {
    checker.wrong(
      [...PATH, 'timezone'],
      'has no place beside `every`, which counts from midnight UTC. Remove it',
    );
  }
  return checkEvery(checker, schedule.every, missed);
}

function checkText(checker: Checker, text: string): Schedule | null {
  if (parseDuration(text) !== undefined) {
    checker.wrong(PATH, `must be a cron expression or a map. Write { every: ${text} }`);
    return null;
  }
  const wrong = checkCron(text, 'UTC');
  if (wrong !== undefined) checker.wrong(PATH, wrong);
  return { cron: text, timezone: 'UTC', missed: 'run' };
}

function readCron(checker: Checker, schedule: Record<string, unknown>, missed: Missed): Schedule | null {
  const path = [...PATH, 'cron'];
  const cron = checker.text(schedule.cron, path, 200);
  const timezone = isMissing(schedule.timezone)
    ? 'UTC'
    : checker.text(schedule.timezone, [...PATH, 'timezone'], 100);
  if (cron === undefined || timezone === undefined) return null;
  const wrong = checkCron(cron, timezone);
  const blamed = checkCron('* * * * *', timezone) === undefined ? path : [...PATH, 'timezone'];
  if (wrong !== undefined) checker.wrong(blamed, wrong);
  return { cron, timezone, missed };
}

function checkEvery(checker: Checker, value: unknown, missed: Missed): Schedule | null {
  const everyMs = parseDuration(value);
  if (everyMs !== undefined && everyMs >= MIN_EVERY_MS && everyMs <= MAX_EVERY_MS) return { everyMs, missed };
  const unit = typeof value === 'number' ? ': add a unit' : '';
  checker.wrong(
    [...PATH, 'every'],
    `must be a duration such as 15m, 6h or 1d, from 1m to 366d, found ${describe(value)}${unit}`,
  );
  return null;
}
