/** What pages ask about what a workflow is made of. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';

/** Read again by hand: a file may have changed without anything being told of it, and who edits is not disturbed. */
export const definitionQuery = (workflowId: string) =>
  queryOptions({
    queryKey: ['definition', workflowId],
    queryFn: ({ signal }) => flowhook.workflows.definition(workflowId, { signal }),
    staleTime: 0,
  });
