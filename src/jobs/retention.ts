/** Deletes old finished jobs and their logs. */
import { type Chore, inSteps } from '../std/chore.ts';
import { type ChoreDeps, choreOnOneNode } from '../store/on-one-node.ts';

const EVERY_MS = 60_000;
/** The first step is small, because a job may have several MiB of logs. */
const STEPS = { first: 4, max: 500 };

/** @param options.keepJobs how many of the newest jobs of each workflow are kept, for `keepMs` at most */
export function jobRetention(options: ChoreDeps & { keepJobs: number; keepMs: number }): Chore {
  const { store, keepJobs, keepMs } = options;
  return choreOnOneNode({
    ...options,
    name: 'jobs.prune',
    everyMs: EVERY_MS,
    failed: 'jobs.not_pruned',
    work: (signal) => inSteps((limit) => store.jobs.prune({ keepJobs, keepMs, limit }), STEPS, signal),
  });
}
