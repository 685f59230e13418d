/** The time, as something that is handed in. */

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
