/** Queries for feeds. */
import { flowhook } from '../client.ts';
import { ask } from './list.ts';

/** The feeds of a workflow, oldest first. The stream does not report them. */
export const feedsQuery = (workflowId: string) =>
  ask(['feeds', 'of', workflowId], async (signal) => flowhook.feeds.list(workflowId, { signal }));
