/** The page that one has gone to, if the key of the session may read at all: most pages show nothing else. */
import { Outlet, useLocation } from '@tanstack/react-router';
import { NeedsScope } from '../parts/needs-scope.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useSession } from '../session.tsx';
import { DESTINATIONS } from './navigation.tsx';

export function ReadablePage() {
  const { can } = useSession();
  const [, place = ''] = useLocation({ select: ({ pathname }) => pathname }).split('/');
  const destination = DESTINATIONS.find(({ to }) => to === `/${place}`);
  // What takes another scope says so by itself.
  if (destination?.scope !== 'read' || can('read')) return <Outlet />;
  const { label } = destination;
  return (
    <>
      <PageHeader key={label} title={label} />
      <NeedsScope scope="read" what={place === '' ? 'the overview' : label.toLowerCase()} />
    </>
  );
}
