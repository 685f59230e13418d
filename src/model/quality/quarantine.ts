/**
 * The quarantine of a workflow: records that did not meet an expectation, set aside with the reasons while the rest of
 * their run was published. It has one record per id, the newest. A later good record with the same id, from a run, a push
 * or by accepting, ends the entry in the transaction that publishes it. What is published with the same id meanwhile
 * stays as it was.
 */

/** One expectation that a record did not meet. `found` is the value, shortened. */
export interface QuarantineReason {
  field: string;
  expectation: string;
  found: number | string | boolean | null;
  limit: number | string | boolean | null;
}

/** A record that a run sets aside. `position` counts the run's records from 1; `body` is the record's JSON text. */
export interface SetAside {
  position: number;
  id: string;
  body: string;
  bytes: number;
  reasons: readonly QuarantineReason[];
}

/** A record in the quarantine. Times in epoch milliseconds. */
export interface Quarantined extends SetAside {
  jobId: string;
  setAsideAt: number;
}

/** How much one run may set aside. A run with more is refused, because then it is the source that needs attention. */
export const MOST_SET_ASIDE = { records: 1_000, bytes: 10 * 1_048_576 };

/** How much the quarantine of a workflow keeps. Beyond this, the oldest records are deleted. */
export const MOST_QUARANTINED = { records: 10_000, bytes: 100 * 1_048_576 };

/** Whether a run with so many bad records is refused. */
export function isTooMuchAside({ records, bytes }: { records: number; bytes: number }): boolean {
  return records > MOST_SET_ASIDE.records || bytes > MOST_SET_ASIDE.bytes;
}
