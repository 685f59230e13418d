/** Pages whose code is loaded on demand, and the pages that stand for those that cannot be shown. */
import { type ErrorComponentProps, lazyRouteComponent, useRouter } from '@tanstack/react-router';
import { ButtonLink, EmptyState, ErrorBox, PageHeader } from '../parts/page.tsx';

/** The code of a page could not be loaded. The router itself would reload the document at once and show nothing. */
class PageNotLoaded extends Error {}

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

/** The error boundary of a page: shows the error and a retry button. The rest of the dashboard keeps working. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = () => {
    // After an update its file has another name, which only the page itself learns.
    if (error instanceof PageNotLoaded) location.reload();
    reset();
    void router.invalidate();
  };
  return (
    <>
      <PageHeader title="This page broke" />
      <ErrorBox
        error={error instanceof Error ? error : new Error(String(error))}
        title="The page could not be shown"
        onRetry={retry}
      />
    </>
  );
}

/** The page for an unknown path. */
export function NotFoundPage() {
  return (
    <>
      <PageHeader title="Not found" />
      <EmptyState title="There is no such page" action={<ButtonLink to="/">Overview</ButtonLink>}>
        The address may be mistyped, or what it showed is no longer kept.
      </EmptyState>
    </>
  );
}
