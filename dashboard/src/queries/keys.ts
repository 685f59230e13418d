/** What pages ask about keys. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';
import { listQuery } from './list.ts';

export const keyList = () =>
  listQuery(['keys', 'list'], (cursor, signal) => flowhook.keys.list({ limit: 1_000, signal }).page(cursor));

/** For a choice among them. */
export const keyNamesQuery = () =>
  queryOptions({
    queryKey: ['keys', 'names'],
    queryFn: async ({ signal }) => {
      const keys = await flowhook.keys.list({ limit: 1_000, signal }).take(1_000);
      return keys.map(({ id, name, prefix }) => ({ value: id, label: `${name} ${prefix}…`.trim() }));
    },
  });
