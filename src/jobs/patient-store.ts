/** A store for a run: what the run writes is tried again while the database is away. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorCode, Problem } from '../model/error.ts';
import { fullJitterMs } from '../std/backoff.ts';
import type { Store } from '../store/store.ts';

/** A write that could not be made for this long fails, and the run with it. */
const PATIENCE_MS = 15_000;
const PAUSE = { baseMs: 250, maxMs: 2_000 };

/**
 * The same store, with patience: a database that is away for a moment must not cost a run its work. Trying again
 * is safe even when the first try was committed after all, for staging the same twice changes nothing, and an
 * attempt that has ended is fenced.
 *
 * @param signal ends the waiting: the attempt was interrupted
 */
export function patientStore(store: Store, signal: AbortSignal, random: () => number): Store {
  const again =
    <Input, Result>(write: (input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      const giveUpAt = performance.now() + PATIENCE_MS;
      for (let failures = 1; ; failures += 1) {
        try {
          return await write(input);
        } catch (error) {
          if (!isAway(error) || signal.aborted || performance.now() > giveUpAt) throw error;
          const ms = fullJitterMs({ failures, ...PAUSE, random: random() });
          await pause(ms, undefined, { signal }).catch(() => undefined);
        }
      }
    };
  const { jobs, records } = store;
  return {
    ...store,
    jobs: {
      ...jobs,
      setProcess: again(jobs.setProcess),
      fail: again(jobs.fail),
      endCanceled: again(jobs.endCanceled),
    },
    records: {
      ...records,
      sweep: again(records.sweep),
      stage: again(records.stage),
      remove: again(records.remove),
      publish: again(records.publish),
    },
  };
}

const PASSING: ReadonlySet<ErrorCode> = new Set([
  'database_unavailable',
  'database_busy',
  'disk_full',
  'disk_failed',
  'overloaded',
]);

function isAway(error: unknown): boolean {
  return error instanceof Problem && PASSING.has(error.code);
}
