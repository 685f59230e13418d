/** The query cache: how long answers are fresh, and what an ended session does. */
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Unauthorized } from 'flowhook-client';

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onRefusal }),
  mutationCache: new MutationCache({ onError: onRefusal }),
  defaultOptions: {
    queries: {
      // The stream says what has changed; without it, older answers are refetched when one comes back to them.
      staleTime: 30_000,
      gcTime: 5 * 60_000,
      // The client retries by itself where that is safe.
      retry: false,
      refetchOnWindowFocus: false,
    },
  },
});

/** The contract has no 403 for a key that lacks a scope: only the session query can say whether the session has ended. */
function onRefusal(error: unknown): void {
  if (error instanceof Unauthorized) lookAtSession();
}

/** Fetches the session again; without one the sign-in page is shown. */
export function lookAtSession(): void {
  void queryClient.invalidateQueries({ queryKey: ['session'] });
}
