/** What pages ask about workflows. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';

/** With their last runs. @param q only those whose id or name contains this text */
export const workflowList = (q?: string) =>
  listQuery(['workflows', 'list', q ?? null], (cursor, signal) =>
    flowhook.workflows.list({ q, recentJobs: RECENT_JOBS, signal }).page(cursor),
  );

const RECENT_JOBS = 14;

/** Some workflows without their runs, for the first steps. */
export const someWorkflows = () =>
  listQuery(['workflows', 'list', 'some'], async (_, signal) => {
    const { items } = await flowhook.workflows.list({ limit: 20, signal }).page();
    return { items, next: null };
  });

export const workflowQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ['workflows', 'one', workflowId],
    queryFn: ({ signal }) => flowhook.workflows.get(workflowId, { signal }),
  });

export const versionList = (workflowId: string) =>
  listQuery(['versions', 'list', workflowId], (cursor, signal) =>
    flowhook.workflows.versions(workflowId, { signal }).page(cursor),
  );

/** Every workflow, to choose one from. */
export const workflowNamesQuery = () =>
  queryOptions({
    queryKey: ['workflows', 'names'],
    queryFn: async ({ signal }) => {
      const workflows = await flowhook.workflows.list({ limit: 1_000, signal }).take(1_000);
      return workflows.map(({ id, name }) => ({ value: id, label: name === id ? id : `${name} (${id})` }));
    },
  });
