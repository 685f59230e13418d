/** How much teams have done: a part of the Store, see `store.ts` for what holds of all operations. */
import type { UsageCounts, UsageKind, UsagePeriod } from '../model/usage.ts';

/** Whose numbers, and of which hours or days: those that begin at `from` or later and before `until`. */
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
   * Counts what has happened since the last call, from the events and attempts that are there: at most some `limit` of
   * them a call, to be called until done. Attempts count once they began `graceMs` ago: sooner not all are written down.
   * No other operation writes what is counted, except `deliveries.expire`, which leaves no attempt to count.
   */
  count(input: { graceMs: number; limit: number }): Promise<{ done: boolean }>;
  /** What was counted, oldest first, without the periods in which nothing was. All until `countedUntil` is in it. */
  read(
    input: UsageQuery,
  ): Promise<{ countedUntil: number; periods: (Partial<UsageCounts> & { start: number })[] }>;
  /** Deletes hours and days that began longer ago. At most `limit` of each a call, to be called until done. */
  prune(input: { hoursMs: number; daysMs: number; limit: number }): Promise<{ done: boolean }>;
}
