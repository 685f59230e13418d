/** Times as people and programs write them: ISO 8601 with its time zone said. */

const FORM = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Epoch milliseconds of `2026-11-20`, `2026-11-20T10:00Z` or `2026-11-20T11:00:05.250+01:00`; a date alone begins
 * at midnight UTC. Nothing when it is not of this form, or there is no such time.
 */
export function parseIsoTime(text: string): number | undefined {
  const ms = FORM.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
