/** The time as something that is handed in, as ISO 8601, and as a limit. */

/** Answers the present in milliseconds since 1970 (UTC). `Date.now` in production, a variable in tests. */
export type Clock = () => number;

let lastMs = 0;
let lastText = new Date(0).toISOString();

/**
 * Epoch milliseconds as ISO 8601 in UTC with milliseconds: the only form in which a time leaves the service. The last
 * one is kept: what is written in one batch has one time, and a body says it several times.
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
 * Epoch milliseconds of `2026-11-20`, `2026-11-20T10:00Z` or `2026-11-20T11:00:05.250+01:00`; a date alone begins
 * at midnight UTC. Nothing when it is not of this form, or there is no such time.
 */
export function parseIsoTime(text: string): number | undefined {
  const ms = FORM.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

const LATE = Symbol('late');

/** What the work settles with, or what `late` answers or throws when it takes longer; the work itself goes on. */
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
