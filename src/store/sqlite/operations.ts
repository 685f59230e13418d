/** The operations of this driver: those that both have, and those whose way is SQLite's own. */
import { read, write } from '../operation.ts';
import { laneNames } from '../operations/lanes.ts';
import { OPERATIONS } from '../operations/table.ts';
import type { Tx } from '../sql.ts';
import { beat, claim } from './jobs.ts';
import { dueLanes, lane, load } from './lanes.ts';

export const SQLITE_OPERATIONS = {
  ...OPERATIONS,
  jobs: { ...OPERATIONS.jobs, claim: write(claim), beat: write(beat) },
  deliveries: { ...OPERATIONS.deliveries, load: read(load) },
  lanes: { names: read(laneNames), due: read(dueLanes), one: read(lane) },
};

/** The name of an operation, as `keys.create`. */
export type WriteName = {
  [Group in keyof typeof SQLITE_OPERATIONS]: `${Group}.${string & keyof (typeof SQLITE_OPERATIONS)[Group]}`;
}[keyof typeof SQLITE_OPERATIONS];

/** Every operation that writes, by its name: what the writer thread can be asked to do. */
export const WRITES: ReadonlyMap<string, (tx: Tx, input: never) => Promise<unknown>> = new Map(
  Object.entries(SQLITE_OPERATIONS).flatMap(([group, operations]) =>
    Object.entries(operations)
      .filter(([, { kind }]) => kind !== 'read')
      .map(([name, { run }]) => [`${group}.${name}`, run] as const),
  ),
);
