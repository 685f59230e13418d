/** Usage statistics: part of the Store; `store.ts` says what all operations have in common. */
import type { UsageCounts, UsageKind, UsagePeriod } from '../model/usage.ts';

/** Whose usage, and for which hours or days: those that begin at `from` or later and before `until`. */
export interface UsageQuery {
  teamId: string;
  kind: UsageKind;
  /** The id of the workflow or webhook; '' for the team. */
  subject: string;
  period: UsagePeriod;
  from: number;
  until: number;
}

export interface UsageOperations {
  /**
   * Aggregates the events and attempts stored since the last call, at most some `limit` per call; call until `done`.
   * Attempts are counted `graceMs` after they began, because they are stored only when they have ended; any stored
   * later than that are missed. Nothing else updates the counts, except `deliveries.expire`, which leaves no attempt
   * to count.
   */
  count(input: { graceMs: number; limit: number }): Promise<{ done: boolean }>;
  /** The counts by period, oldest first, without empty periods; complete up to `countedUntil`. */
  read(
    input: UsageQuery,
  ): Promise<{ countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] }>;
  /** Deletes hours and days that began longer ago. At most `limit` of each per call; call until `done`. */
  prune(input: { hoursMs: number; daysMs: number; limit: number }): Promise<{ done: boolean }>;
}
