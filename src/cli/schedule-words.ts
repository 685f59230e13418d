/** A schedule in plain words: when it runs, its next run, and how long until then. */
import type { Schedule } from '../model/workflow.ts';
import { durationWords } from '../std/amounts.ts';

const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/**
 * `every 15 minutes`, `at 06:00 from Monday to Friday (Europe/Berlin)`. A cron expression without a short form in
 * words is returned as it was written.
 */
export function scheduleWords(schedule: Schedule): string {
  if ('everyMs' in schedule) return `every ${everyWords(schedule.everyMs)}`;
  return `${cronWords(schedule.cron) ?? `cron ${schedule.cron}`} (${schedule.timezone})`;
}

/** `Mon 23 Nov 2026, 06:00 Europe/Berlin, in 2 days 8 h`; a schedule without a time zone is shown in that of this machine. */
export function nextRunWords(schedule: Schedule, nextRunAt: number | null, nowMs: number): string {
  if (nextRunAt === null) return 'never again';
  const { timeZone } =
    'everyMs' in schedule ? new Intl.DateTimeFormat().resolvedOptions() : { timeZone: schedule.timezone };
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(nextRunAt % 60_000 === 0 ? {} : { second: '2-digit' }),
  }).formatToParts(nextRunAt);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((one) => one.type === type)?.value;
  const time = [part('hour'), part('minute'), part('second')].filter(Boolean).join(':');
  const when = `${part('weekday')} ${part('day')} ${part('month')} ${part('year')}, ${time} ${timeZone}`;
  const left = nextRunAt - nowMs;
  return `${when}, ${left <= 0 ? 'due now' : `in ${durationWords(left)}`}`;
}

/** Undefined when there is no short form in words. Five fields: minute, hour, day, month, weekday. */
export function cronWords(cron: string): string | undefined {
  const fields = cron.trim().split(/\s+/);
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  if (fields.length !== 5) return undefined;
  const time = timeWords(minute, hour);
  const days = dayWords(day, month, weekday);
  if (time === undefined || days === undefined) return undefined;
  return [time, days].filter((words) => words !== '').join(' ');
}

function timeWords(minute: string, hour: string): string | undefined {
  const minutes = numbers(minute, 0, 59);
  const hours = numbers(hour, 0, 23);
  const minuteStep = step(minute);
  const hourStep = step(hour);
  if (minutes !== undefined && hours !== undefined) {
    // A longer list would be unreadable.
    if (minutes.length * hours.length > 6) return undefined;
    return `at ${list(hours.flatMap((h) => minutes.map((m) => `${pad(h)}:${pad(m)}`)))}`;
  }
  const [from, to] = range(hour, 0, 23) ?? [];
  const between = from === undefined ? undefined : ` from ${pad(from)}:00 to ${pad(to ?? 0)}:59`;
  if (minuteStep !== undefined) {
    const every = `every ${plural(minuteStep, 'minute')}`;
    if (hour === '*') return every;
    return between === undefined ? undefined : every + between;
  }
  if (minutes === undefined || minutes.length > 6) return undefined;
  const past = minutes.length === 1 && minutes[0] === 0 ? '' : ` at ${list(minutes.map(String))} past`;
  if (hour === '*') return `every hour${past}`;
  if (hourStep !== undefined) return `every ${plural(hourStep, 'hour')}${past}`;
  return between === undefined
    ? undefined
    : `every hour${past} from ${pad(from ?? 0)}:${pad(minutes[0] ?? 0)} to ${pad(to ?? 0)}:${pad(minutes.at(-1) ?? 0)}`;
}

function dayWords(day: string, month: string, weekday: string): string | undefined {
  const months = month === '*' ? [] : numbers(month, 1, 12);
  if (months === undefined) return undefined;
  const inMonths = months.length === 0 ? '' : ` in ${list(months.map((one) => MONTHS[one - 1] ?? ''))}`;
  if (day === '*' && weekday === '*') return inMonths === '' ? '' : `every day${inMonths}`;
  if (day === '*') {
    const span = range(weekday, 0, 7);
    if (span !== undefined) return `from ${nameOf(span[0])} to ${nameOf(span[1])}${inMonths}`;
    const days = numbers(weekday, 0, 7);
    return days && `on ${list(days.map(nameOf))}${inMonths}`;
  }
  // In cron, both together mean either of them: clearer as it is written.
  if (weekday !== '*') return undefined;
  const days = numbers(day, 1, 31);
  return days && `on the ${list(days.map(ordinal))}${inMonths === '' ? ' of each month' : inMonths}`;
}

/** The numbers of `6` or `6,18`; undefined for anything else. */
function numbers(field: string, least: number, most: number): number[] | undefined {
  if (!/^\d{1,2}(,\d{1,2})*$/.test(field)) return undefined;
  const found = field.split(',').map(Number);
  return found.every((one) => one >= least && one <= most) ? found : undefined;
}

function range(field: string, least: number, most: number): [number, number] | undefined {
  const [, first, last] = /^(\d{1,2})-(\d{1,2})$/.exec(field) ?? [];
  const [from, to] = [Number(first), Number(last)];
  return first !== undefined && from >= least && to <= most && from < to ? [from, to] : undefined;
}

/** The step of `*` (1) and `*\/n`. */
function step(field: string): number | undefined {
  if (field === '*') return 1;
  const [, every] = /^\*\/([1-9]\d?)$/.exec(field) ?? [];
  return every === undefined ? undefined : Number(every);
}

function everyWords(ms: number): string {
  const units = [
    [86_400_000, 'day'],
    [3_600_000, 'hour'],
    [60_000, 'minute'],
    [1_000, 'second'],
  ] as const;
  const [size, noun] = units.find(([one]) => ms % one === 0) ?? [1, 'millisecond'];
  return plural(ms / size, noun);
}

function plural(count: number, noun: string): string {
  return count === 1 ? noun : `${count} ${noun}s`;
}

function ordinal(day: number): string {
  const ending = day >= 11 && day <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][day % 10] ?? 'th');
  return `${day}${ending}`;
}

/** Both 0 and 7 are Sunday. */
function nameOf(day: number): string {
  return DAYS[day % 7] ?? '';
}

function list(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

function pad(number: number): string {
  return String(number).padStart(2, '0');
}
