/** Parses response headers: `Retry-After` and `Link`. */

/** A longer wait counts as this long. Each caller has a lower limit of its own. */
const MAX_MS = 24 * 3_600_000;
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)';
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH = `(?<month>${MONTHS.join('|')})`;
const TIME = '(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})';

/** The three formats of an HTTP-date (RFC 9110, section 5.6.7): the preferred format, RFC 850, and asctime. */
const DATES = [
  new RegExp(`^${DAY}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^${LONG_DAY}, (?<day>\\d{2})-${MONTH}-(?<year>\\d{2}) ${TIME} GMT$`),
  new RegExp(`^${DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

/**
 * Returns the milliseconds to wait, at most 24 hours. RFC 9110 allows whole seconds and dates. Fractions of a second
 * are accepted too, because some servers send them. If there are several headers, the longest wait counts. A date in
 * the past means 0.
 *
 * @returns null if there is no valid header
 */
export function retryAfterMs(header: string | string[] | undefined, nowMs: number): number | null {
  const waits = [header ?? []].flat().map((value) => waitMs(value.trim(), nowMs));
  return waits.reduce((longest, wait) => (wait === null ? longest : Math.max(longest ?? 0, wait)), null);
}

function waitMs(value: string, nowMs: number): number | null {
  if (/^\d+(?:\.\d+)?$/.test(value)) return Math.min(MAX_MS, Math.ceil(Number(value) * 1_000));
  const at = httpDate(value, nowMs);
  return at === null ? null : Math.min(MAX_MS, Math.max(0, at - nowMs));
}

function httpDate(text: string, nowMs: number): number | null {
  const found = DATES.map((form) => form.exec(text)?.groups).find((groups) => groups !== undefined);
  if (found === undefined) return null;
  const [day, hour, minute, second] = [found.day, found.hour, found.minute, found.second].map(Number);
  if (day === undefined || hour === undefined || minute === undefined || second === undefined) return null;
  const year = found.year?.length === 2 ? fullYear(Number(found.year), nowMs) : Number(found.year);
  const month = MONTHS.indexOf(found.month ?? '');
  // A leap second (60) becomes the first second of the next minute.
  if (hour > 23 || minute > 59 || second > 60) return null;
  // `Date.UTC` maps the years 0 to 99 to 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  if (date.getUTCDate() !== day) return null;
  return date.setUTCHours(hour, minute, second);
}

/**
 * RFC 9110: a two-digit year that appears to be more than 50 years in the future means the most recent past year
 * with these digits.
 */
function fullYear(twoDigits: number, nowMs: number): number {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + twoDigits;
  return year > thisYear + 50 ? year - 100 : year;
}

/**
 * Returns the target of the first link with this relation. The target is returned as written, so it may be relative to
 * the URL of the response.
 */
export function linkTo(relation: string, header: string | undefined): string | undefined {
  for (const [, target, params = ''] of (header ?? '').matchAll(
    /<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^\s;,"]*))?)*)/g,
  )) {
    const relations = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]*))/i.exec(params);
    const names = (relations?.[1] ?? relations?.[2] ?? '').toLowerCase().split(/\s+/);
    if (names.includes(relation)) return target;
  }
  return undefined;
}
