/** Pages whose code is loaded on demand. */
import { lazyRouteComponent } from '@tanstack/react-router';

/** The code of a page could not be loaded. The router itself would reload the document at once and show nothing. */
export class PageNotLoaded extends Error {}

/** @param name what the file exports */
export function page<Module extends Record<string, unknown>, Name extends keyof Module & string>(
  load: () => Promise<Module>,
  name: Name,
) {
  const loaded = () =>
    load().catch((cause) => {
      throw new PageNotLoaded('The service does not answer, or it was updated since this tab was opened', {
        cause,
      });
    });
  return lazyRouteComponent(loaded as () => Promise<Record<Name, () => React.ReactNode>>, name);
}
