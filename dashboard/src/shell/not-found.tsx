/** The page for an unknown path. */
import { EmptyState } from '../parts/empty-state.tsx';
import { ButtonLink } from '../parts/link.tsx';
import { PageHeader } from '../parts/page-header.tsx';

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
