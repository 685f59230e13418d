/** What is known of the service, and when it is asked again. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Unauthorized } from 'flowhook-client';

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onRefusal }),
  mutationCache: new MutationCache({ onError: onRefusal }),
  defaultOptions: {
    queries: {
      // The stream tells what has changed; without it, what is older than this is asked for again on return.
      staleTime: 30_000,
      gcTime: 5 * 60_000,
      // The client tries again by itself, where that is safe.
      retry: false,
      refetchOnWindowFocus: false,
    },
  },
});

/** 401 is also said of a key that lacks a scope: only the session itself knows whether it has ended. */
function onRefusal(error: unknown): void {
  if (error instanceof Unauthorized) lookAtSession();
}

/** Asks whether there still is a session; without one the sign-in page shows. */
export function lookAtSession(): void {
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}
