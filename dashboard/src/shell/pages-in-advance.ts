/** Preloads the code of all pages: navigating then waits for nothing, also while the service is not reachable. */
import { useRouter } from '@tanstack/react-router';
import { useEffect } from 'react';

/** After the first page has loaded its data, in milliseconds. */
const AFTER_MS = 1_500;

export function usePagesInAdvance(): void {
  const router = useRouter();
  useEffect(() => {
    const load = async () => {
      for (const route of Object.values(router.routesById)) await router.loadRouteChunk(route);
    };
    // A page that cannot be preloaded says so when it is opened.
    const timer = setTimeout(() => void load().catch(() => {}), AFTER_MS);
    return () => clearTimeout(timer);
  }, [router]);
}
