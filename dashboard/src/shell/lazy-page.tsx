/** Loading the code of pages on demand, and the pages for errors and unknown paths. */
import { type ErrorComponentProps, lazyRouteComponent, useRouter } from '@tanstack/react-router';
import { ButtonLink, EmptyState, ErrorBox, PageHeader } from '../parts/page.tsx';

/** The code of a page could not be loaded. For other errors the router would reload the document and show nothing. */
class PageNotLoaded extends Error {}

/** @param name of the exported component */
export function page<Module extends Record<string, unknown>, Name extends keyof Module & string>(
  load: () => Promise<Module>,
  name: Name,
) {
  const loaded = () =>
    load().catch((cause) => {
      throw new PageNotLoaded(
        'The service is not responding, or it was updated after this tab was opened. Try again.',
        {
          cause,
        },
      );
    });
  return lazyRouteComponent(loaded as () => Promise<Record<Name, () => React.ReactNode>>, name);
}

/** The error boundary of a page: shows the error and a retry button. The rest of the dashboard keeps working. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  const retry = () => {
    // After an update the file has another name, which only a new index.html contains.
    if (error instanceof PageNotLoaded) location.reload();
    reset();
    void router.invalidate();
  };
  return (
    <>
      <PageHeader title="Page error" />
      <ErrorBox
        error={error instanceof Error ? error : new Error(String(error))}
        title="This page could not be shown"
        onRetry={retry}
      />
    </>
  );
}

/** The page for an unknown path. */
export function NotFoundPage() {
  return (
    <>
      <PageHeader title="Page not found" />
      <EmptyState
        title="This page does not exist"
        action={<ButtonLink to="/">Go to the overview</ButtonLink>}
      >
        Check the address. The page may also have been deleted.
      </EmptyState>
    </>
  );
}
