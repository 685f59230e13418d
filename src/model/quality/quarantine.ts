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

/** The id of a record that a run delivered although it is in the quarantine, and the position in the run. */
export interface Release {
  id: string;
  position: number;
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

/** Why a run that has set this much aside is refused; undefined if it is not. */
export function tooMuchAside({ records, bytes }: { records: number; bytes: number }): string | undefined {
  const most = MOST_SET_ASIDE;
  if (records <= most.records && bytes <= most.bytes) return undefined;
  const what =
    records > most.records
      ? `more than ${most.records} records do not meet the expectations of their fields`
      : `the records that do not meet the expectations of their fields have more than ${most.bytes / 1_048_576} MiB`;
  return (
    `Nothing was published: ${what}, and \`otherwise: quarantine\` sets no more aside. ` +
    'Check what the source returned, or change `expect`'
  );
}
