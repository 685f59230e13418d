/** The few reads that a worker thread needs, in a file of their own, because threads start faster with little code. */
import { changes } from './operations/history/changes.ts';
import * as profiles from './operations/quality/profiles.ts';
import * as quarantine from './operations/quarantine/staged.ts';
import * as records from './operations/records.ts';
import * as decisions from './operations/rules/decisions.ts';
import { forPeople } from './operations/rules/for-people.ts';
import * as versions from './operations/versions.ts';
import type { StoreReader } from './store.ts';
import type { View } from './transaction.ts';

/** Turns an operation into a function on a connection. */
type Reading = <Result, Input>(
  operation: (view: View, input: Input) => Promise<Result>,
) => (input: Input) => Promise<Result>;

export function readerOperations(read: Reading): Omit<StoreReader, 'close'> {
  return {
    records: {
      compare: read(records.compare),
      page: read(records.page),
      version: read(versions.version),
      changes: read(changes),
    },
    quarantine: { keys: read(quarantine.keys) },
    profiles: { earlier: read(profiles.earlier) },
    decisions: {
      pending: read(decisions.pending),
      quiet: read(decisions.quiet),
      ended: read(decisions.ended),
      forPeople: read(forPeople),
      digest: read(decisions.digest),
      endedDigest: read(decisions.endedDigest),
    },
  };
}
