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
  const ms = FORM.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
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
