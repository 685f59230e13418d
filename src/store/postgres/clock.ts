/**
 * The database's clock, as this process knows it: all nodes use one clock, whatever their own say. The offset is
 * measured every 10 s; in between, the monotonic clock of this process counts on.
 */
import { performance } from 'node:perf_hooks';
import type { Clock } from '../../std/clock.ts';
import type { Database } from './database.ts';

/** Quartz clocks drift by less than 0.1 ms a second. */
const MEASURE_EVERY_MS = 10_000;

export interface DatabaseClock {
  now: Clock;
  stop(): void;
}

/**
 * Measures now, and then every 10 s. The error is at most half of the shortest round trip, plus the drift between two
 * measurements.
 */
export async function startClock(db: Database): Promise<DatabaseClock> {
  let offset = await measure(db);
  const timer = setInterval(() => {
    measure(db).then(
      (measured) => {
        offset = measured;
      },
      // While the database cannot be reached, nobody needs its time.
      () => undefined,
    );
  }, MEASURE_EVERY_MS).unref();
  return { now: () => Math.floor(performance.now() + offset), stop: () => clearInterval(timer) };
}

/** What must be added to the monotonic clock to get the database's, by the quickest of three round trips. */
async function measure(db: Database): Promise<number> {
  let best = { tookMs: Number.POSITIVE_INFINITY, offset: 0 };
  for (let tries = 0; tries < 3; tries += 1) {
    const asked = performance.now();
    const { at } = (await db.get<{ at: number }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::float8 as at',
    )) as { at: number };
    const tookMs = performance.now() - asked;
    if (tookMs < best.tookMs) best = { tookMs, offset: at - asked - tookMs / 2 };
  }
  return best.offset;
}
