/** Queries for jobs. */
import { flowhook } from '../client.ts';
import { ask, type FilterOf, listQuery } from './list.ts';

export const jobList = (filter: FilterOf<typeof flowhook.jobs.list>) =>
  listQuery(
    ['jobs', 'list', filter],
    (cursor, signal) => flowhook.jobs.list({ ...filter, signal }).page(cursor),
    { newestFirst: ({ id }) => id, one: (jobId) => flowhook.jobs.get(jobId) },
  );

export const jobQuery = (jobId: string) =>
  ask(['jobs', 'one', jobId], (signal) => flowhook.jobs.get(jobId, { signal }));

/** How many jobs are in each state. */
export const jobCountsQuery = (workflowId?: string) =>
  ask(['counts', 'jobs', workflowId ?? null], (signal) => flowhook.jobs.counts({ workflowId, signal }));

/** The events of a job, oldest first. */
export const jobEventsQuery = (jobId: string) =>
  ask(['events', 'of', jobId], async (signal) =>
    (await flowhook.events.history({ jobId, signal }).take(20)).toReversed(),
  );

/** The newest jobs, without further pages. */
export const latestJobs = () =>
  listQuery(['jobs', 'list', 'latest'], async (_, signal) => {
    const { items } = await flowhook.jobs.list({ limit: LATEST, signal }).page();
    return { items, next: null, total: items.length };
  });

const LATEST = 8;
