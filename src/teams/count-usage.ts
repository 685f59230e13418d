/** Counts the usage of teams in the background, from their events and attempts, and deletes old counts. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 15_000;
/** Attempts are counted this late, so that they are settled: one takes 30 s at most (`MAX_TIMEOUT_MS`). */
const GRACE_MS = 60_000;
const STEPS = { first: 100, max: 2_000 };

const DAY_MS = 24 * 3_600_000;
/** How long hourly and daily counts are kept. */
const KEEP_HOURS_MS = 92 * DAY_MS;
const KEEP_DAYS_MS = 3 * 366 * DAY_MS;

export function usageCounting(options: {
  store: Store;
  log: Logger;
  random: () => number;
  nodeId: string;
}): Chore {
  const { store, log, random, nodeId } = options;
  const keep = { hoursMs: KEEP_HOURS_MS, daysMs: KEEP_DAYS_MS };
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'usage.count', nodeId }, async (signal) => {
      await inSteps((limit) => store.usage.count({ graceMs: GRACE_MS, limit }), STEPS, signal);
      await inSteps((limit) => store.usage.prune({ ...keep, limit }), STEPS, signal);
    }),
    failed: (err) => log.error({ err }, 'usage.not_counted'),
  });
}
