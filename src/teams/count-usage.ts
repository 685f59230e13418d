/** Counts the usage of teams in the background, from their events and attempts, and deletes old counts. */
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';

const EVERY_MS = 15_000;
/** Attempts are counted this late, so that they are settled: one takes 30 s at most (`MAX_TIMEOUT_MS`). */
const GRACE_MS = 60_000;
const STEPS = { first: 100, max: 2_000 };

const DAY_MS = 24 * 3_600_000;
/** How long hourly and daily counts are kept. */
const KEEP_HOURS_MS = 92 * DAY_MS;
const KEEP_DAYS_MS = 3 * 366 * DAY_MS;

export function usageCounting(deps: ChoreDeps): Chore {
  const { usage } = deps.store;
  const keep = { hoursMs: KEEP_HOURS_MS, daysMs: KEEP_DAYS_MS };
  return choreOnOneNode({
    ...deps,
    name: 'usage.count',
    everyMs: EVERY_MS,
    failed: 'usage.not_counted',
    async work(signal) {
      await inSteps((limit) => usage.count({ graceMs: GRACE_MS, limit }), STEPS, signal);
      await inSteps((limit) => usage.prune({ ...keep, limit }), STEPS, signal);
    },
  });
}
