/** The time, as something that is handed in. */

/** Answers the present in milliseconds since 1970 (UTC). `Date.now` in production, a variable in tests. */
export type Clock = () => number;

/** Epoch milliseconds as ISO 8601 in UTC with milliseconds: the only form in which a time leaves the service. */
export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}
