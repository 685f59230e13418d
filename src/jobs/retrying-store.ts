/** Wraps a store so that the writes of a run are retried while the database is unavailable. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorCode, Problem } from '../model/error.ts';
import { fullJitterMs } from '../std/backoff.ts';
import type { Store } from '../store/store.ts';

/** How long a write is retried. If the database is still unavailable after this time, the write and the run fail. */
const GIVE_UP_AFTER_MS = 15_000;
const PAUSE = { baseMs: 250, maxMs: 2_000 };

/**
 * Returns the store with retries, so that a run survives a short outage of the database. Retrying is safe even if the first
 * write was committed: staging the same records twice changes nothing, and an attempt that has ended is fenced.
 *
 * @param signal ends the retries when the attempt is interrupted
 */
export function retryingStore(store: Store, signal: AbortSignal, random: () => number): Store {
  const withRetries =
    <Input, Result>(write: (input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      const giveUpAt = performance.now() + GIVE_UP_AFTER_MS;
      for (let failures = 1; ; failures += 1) {
        try {
          return await write(input);
        } catch (error) {
          if (!isTransient(error) || signal.aborted || performance.now() > giveUpAt) throw error;
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
      setProcess: withRetries(jobs.setProcess),
      noteSent: withRetries(jobs.noteSent),
      fail: withRetries(jobs.fail),
      endCanceled: withRetries(jobs.endCanceled),
    },
    records: {
      ...records,
      sweep: withRetries(records.sweep),
      stage: withRetries(records.stage),
      remove: withRetries(records.remove),
      publish: withRetries(records.publish),
    },
  };
}

/** The codes of errors that are expected to be temporary. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  'database_unavailable',
  'database_busy',
  'disk_full',
  'disk_failed',
  'data_moved',
  'overloaded',
]);

function isTransient(error: unknown): boolean {
  return error instanceof Problem && TRANSIENT.has(error.code);
}
