/** Reads timestamps and durations, and the clocks of time zones. */
import { EvaluationMistake } from './mistakes.ts';
import { Duration, described, numberOf, timestampAt } from './values.ts';

const ISO_TIME = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)?)?$/;

export function toTimestamp([value]: readonly unknown[]): Date {
  if (value instanceof Date) return value;
  const seconds = numberOf(value);
  if (seconds !== undefined) return timestampAt(seconds * 1000);
  const ms = typeof value === 'string' && ISO_TIME.test(value) ? Date.parse(inUtc(value)) : Number.NaN;
  if (Number.isNaN(ms)) throw new EvaluationMistake(`Cannot convert ${described(value)} to a timestamp`);
  return timestampAt(ms);
}

/** A time without a zone means UTC, and never depends on the clock of the machine. */
function inUtc(text: string): string {
  return text.length > 10 && !/(?:[Zz]|[+-]\d\d:\d\d)$/.test(text) ? `${text}Z` : text;
}

const DURATION_UNIT_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1_000,
  ms: 1,
};

export function toDuration([value]: readonly unknown[]): Duration {
  if (value instanceof Duration) return value;
  const text = typeof value === 'string' && value.length <= 40 ? value : '';
  if (!/^-?(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+$/.test(text)) {
    throw new EvaluationMistake(`Cannot convert ${described(value)} to a duration such as "90s" or "36h"`);
  }
  let ms = 0;
  for (const [, amount, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|d|h|m|s)/g)) {
    ms += Number(amount) * (DURATION_UNIT_MS[unit] ?? 0);
  }
  return new Duration(text.startsWith('-') ? -ms : ms);
}

export function dayOfYear(time: Date): number {
  return Math.floor((time.getTime() - Date.UTC(time.getUTCFullYear(), 0, 1)) / 86_400_000);
}

/** Looking up the rules of a time zone takes microseconds. */
export const STEPS_OF_ZONE = 100;

/** Formatters of time zones. There are a few hundred zones. */
const zones = new Map<string, Intl.DateTimeFormat>();

/** The time whose fields in UTC are those that clocks of a time zone show. */
export function wallClock(time: Date, zone: string): Date {
  const format = zones.get(zone) ?? formatOf(zone);
  const part: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(time)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second));
}

function formatOf(zone: string): Intl.DateTimeFormat {
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (zones.size < 1_000) zones.set(zone, format);
    return format;
  } catch {
    throw new EvaluationMistake(`No such time zone: ${described(zone)}. Use a name such as "Europe/Berlin"`);
  }
}
