/** Loads the pages that one may go to next: going there then waits for nothing, also while the service is away. */
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';

/** Once the first page stands and has asked what it needs, in milliseconds. */
const AFTER_MS = 1_500;

export function usePagesInAdvance(): void {
  const router = useRouter();
  useEffect(() => {
    const load = async () => {
      for (const route of Object.values(router.routesById)) await router.loadRouteChunk(route);
    };
    // What cannot be loaded now says so when one goes there.
    const timer = setTimeout(() => void load().catch(() => {}), AFTER_MS);
    return () => clearTimeout(timer);
  }, [router]);
}
