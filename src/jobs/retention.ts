/** Deletes jobs that ended long ago, and their logs with them. */
import type { Logger } from '../observe/log.ts';
import { Chore, inSteps } from '../std/chore.ts';
import { onOneNode } from '../store/on-one-node.ts';
import type { Store } from '../store/store.ts';

const EVERY_MS = 60_000;
/** A job may have logs of some MiB: the first step is careful. */
const STEPS = { first: 4, max: 500 };

/** @param options.keepJobs of each workflow, the newest; none of them longer than `keepMs` */
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
