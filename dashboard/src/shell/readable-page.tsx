/** The current page, unless it needs the scope `read` and the session lacks it. */
import { Outlet, useLocation } from '@tanstack/react-router';
import { NeedsScope } from '../parts/needs-scope.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useSession } from '../session.tsx';
import { DESTINATIONS } from './navigation.tsx';

export function ReadablePage() {
  const { can } = useSession();
  const [, place = ''] = useLocation({ select: ({ pathname }) => pathname }).split('/');
  const destination = DESTINATIONS.find(({ to }) => to === `/${place}`);
  // Pages that need another scope say so themselves.
  if (destination?.scope !== 'read' || can('read')) return <Outlet />;
  const { label } = destination;
  return (
    <>
      <PageHeader key={label} title={label} />
      <NeedsScope scope="read" what={place === '' ? 'the overview' : label.toLowerCase()} />
    </>
  );
}
