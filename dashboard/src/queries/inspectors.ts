/** What pages ask about inspectors and what they were sent. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';

export const inspectorsQuery = () =>
  queryOptions({
    queryKey: ['inspectors', 'all'],
    queryFn: async ({ signal }) => (await flowhook.inspectors.list({ signal })).toReversed(),
  });

export const inspectorQuery = (inspectorId: string) =>
  queryOptions({
    queryKey: ['inspectors', 'one', inspectorId],
    queryFn: ({ signal }) => flowhook.inspectors.get(inspectorId, { signal }),
  });

/** At most 100 are kept: one page. */
export const requestList = (inspectorId: string) =>
  listQuery(['inspectors', 'list', inspectorId], (cursor, signal) =>
    flowhook.inspectors.requests(inspectorId, { limit: 100, signal }).page(cursor),
  );
