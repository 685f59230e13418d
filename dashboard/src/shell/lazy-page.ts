/** A page whose file is loaded when one goes there. */
import { lazyRouteComponent } from '@tanstack/react-router';

/** Its file did not come. The router itself would load the whole page anew at once, and show nothing at all. */
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
