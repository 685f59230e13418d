/** What pages ask about how much has been done. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';

/** The last 24 hours, by the hour: of the team, a workflow or a webhook. */
export const dayUsageQuery = (of: { workflowId?: string; webhookId?: string } = {}) =>
  queryOptions({
    queryKey: ['usage', 'day', of],
    queryFn: ({ signal }) => flowhook.usage({ ...of, by: 'hour', signal }),
    // It is read again when something ends; and where nothing does, the hours go on all the same.
    refetchInterval: 5 * 60_000,
  });
