/**
 * The database's clock, as this process knows it: every node of a service reckons by one clock, whatever its own
 * says. The difference is measured now and then, and in between the monotonic clock of this process counts on.
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
 * Asks the database for the time, and again every 10 s. Off by at most half of what the quickest of the questions
 * took, and by what both clocks drift apart in between.
 */
export async function startClock(db: Database): Promise<DatabaseClock> {
  let offset = await measure(db);
  const timer = setInterval(() => {
    measure(db).then(
      (measured) => {
        offset = measured;
      },
      // The database is away: so is whoever would need the time.
      () => undefined,
    );
  }, MEASURE_EVERY_MS).unref();
  return { now: () => Math.floor(performance.now() + offset), stop: () => clearInterval(timer) };
}

/** What the monotonic clock lacks to be the database's. */
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
