/** The error boundary of a page: shows the error and a retry button. The rest of the dashboard keeps working. */
import { type ErrorComponentProps, useRouter } from '@tanstack/react-router';
import { ErrorBox } from '../parts/error-box.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { PageNotLoaded } from './lazy-page.ts';

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
