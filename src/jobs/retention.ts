/** Deletes old finished jobs and their logs. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 60_000;
/** The first step is small, because a job may have several MiB of logs. */
const STEPS = { first: 4, max: 500 };

/** @param options.keepJobs how many of the newest jobs of each workflow are kept, for `keepMs` at most */
export function jobRetention(options: {
  store: Store;
  log: Logger;
  random: () => number;
  keepJobs: number;
  keepMs: number;
  nodeId: string;
}): Chore {
  const { store, log, random, keepJobs, keepMs, nodeId } = options;
  return new Chore({
    everyMs: EVERY_MS,
    random,
    work: onOneNode({ store, name: 'jobs.prune', nodeId }, (signal) =>
      inSteps((limit) => store.jobs.prune({ keepJobs, keepMs, limit }), STEPS, signal),
    ),
    failed: (err) => log.error({ err }, 'jobs.not_pruned'),
  });
}
