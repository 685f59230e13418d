/** Clocks, ISO 8601, and time limits. */

/**
 * Returns the current time in milliseconds since 1970 (UTC). The clock is `Date.now` in production, and a variable in
 * tests.
 */
export type Clock = () => number;

let lastMs = 0;
let lastText = new Date(0).toISOString();

/**
 * Formats epoch milliseconds as ISO 8601 in UTC with milliseconds: the only format in which a time leaves the service.
 * The last result is cached, because all bodies of a batch contain the same time, several times each.
 */
export function toIso(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}

export function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}

const FORM = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Parses `2026-11-20`, `2026-11-20T10:00Z` or `2026-11-20T11:00:05.250+01:00` into epoch milliseconds. A date without a
 * time means midnight UTC. Returns undefined if the text has another format or the time does not exist.
 */
export function parseIsoTime(text: string): number | undefined {
  // `Date.parse` reads 30 February as 2 March.
  const ms = FORM.test(text) && isDay(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

/** The end of a sentence that says why `parseIsoTime` refuses the text; empty if its form is wrong, too. */
export function missingDay(text: string): string {
  return FORM.test(text) && !isDay(text) ? `: there is no day ${text.slice(0, 10)}` : '';
}

/** Whether the text starts with a day that exists. */
export function isDay(text: string): boolean {
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return false;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 7);
  const day = digits(text, 8, 10);
  if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1)) return false;
  if (month === 2) return day <= (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28);
  return day <= (month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31);
}

/** The number that the digits make; NaN if there is another character. */
function digits(text: string, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at += 1) {
    const digit = text.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    number = number * 10 + digit;
  }
  return number;
}

const LATE = Symbol('late');

/**
 * Settles like the work. If the work takes longer than `ms`, settles with the result or error of `late`, while the work
 * continues.
 */
export async function within<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  const over = Promise.withResolvers<typeof LATE>();
  const timer = setTimeout(over.resolve, ms, LATE);
  try {
    const first = await Promise.race([work, over.promise]);
    return first === LATE ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}
