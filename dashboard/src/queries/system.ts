/** What the system page asks. */
import { queryOptions } from '@tanstack/react-query';
import { flowhook } from '../client.ts';

/** How the instance stands; nothing tells of it, so it is asked again. */
export const systemQuery = () =>
  queryOptions({
    queryKey: ['system'],
    queryFn: ({ signal }) => flowhook.system({ signal }),
    refetchInterval: 5_000,
  });

/** What is wrong with the installation. The service remembers it for half a minute, and looks when it is asked. */
export const systemChecksQuery = () =>
  queryOptions({
    queryKey: ['system', 'checks'],
    queryFn: ({ signal }) => flowhook.systemChecks({ signal }),
    refetchInterval: 5 * 60_000,
  });
