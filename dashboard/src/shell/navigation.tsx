/** The navigation, with the pages that the session's key can see. */
import { NavLink, type NavLinkProps, ScrollArea } from '@mantine/core';
import { createLink, Outlet, useLocation } from '@tanstack/react-router';
import type { Ref } from 'react';
import type { Scope } from '../../../client/src/flowhook-client.ts';
import { Icon, type IconName } from '../parts/icon.tsx';
import { PageHeader } from '../parts/page.tsx';
import { NeedsScope, useSession } from '../session.tsx';

export interface Destination {
  to: '/' | '/workflows' | '/runs' | '/webhooks' | '/inspector' | '/events' | '/keys' | '/system';
  label: string;
  icon: IconName;
  /** The scope that the page needs. */
  scope: Scope;
  /** The key after `g` that goes there. */
  letter: string;
}

const DESTINATIONS: readonly Destination[] = [
  { to: '/', label: 'Overview', icon: 'home', scope: 'read', letter: 'o' },
  { to: '/workflows', label: 'Workflows', icon: 'workflow', scope: 'read', letter: 'w' },
  { to: '/runs', label: 'Runs', icon: 'play', scope: 'read', letter: 'r' },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhook', scope: 'webhooks', letter: 'h' },
  { to: '/events', label: 'Events', icon: 'bell', scope: 'read', letter: 'e' },
  { to: '/inspector', label: 'Inspector', icon: 'inspector', scope: 'webhooks', letter: 'i' },
  { to: '/keys', label: 'API keys', icon: 'key', scope: 'admin', letter: 'k' },
  { to: '/system', label: 'System', icon: 'system', scope: 'operator', letter: 's' },
];

/** The pages that the session's key can see. */
export function useDestinations(): readonly Destination[] {
  const { can } = useSession();
  return DESTINATIONS.filter(({ scope }) => can(scope));
}

const Entry = createLink((props: Omit<NavLinkProps, 'href'> & { ref?: Ref<HTMLAnchorElement> }) => (
  <NavLink component="a" {...props} />
));

/** @param props.onGo closes the drawer of a narrow window */
export function Navigation({ onGo }: { onGo: () => void }) {
  return (
    <ScrollArea component="nav" aria-label="Pages" flex={1}>
      {useDestinations().map(({ to, label, icon }) => (
        <Entry
          key={to}
          to={to}
          label={label}
          leftSection={<Icon name={icon} />}
          activeOptions={{ exact: to === '/', includeSearch: false }}
          activeProps={{ active: true }}
          onClick={onGo}
        />
      ))}
      <NavLink component="a" href="/docs" label="API reference" leftSection={<Icon name="api" />} />
    </ScrollArea>
  );
}

/** The current page, unless the page needs the scope `read` and the key lacks that scope. */
export function ReadablePage() {
  const { can } = useSession();
  const [, name = ''] = useLocation({ select: ({ pathname }) => pathname }).split('/');
  const destination = DESTINATIONS.find(({ to }) => to === `/${name}`);
  // Pages that need another scope check it themselves.
  if (destination?.scope !== 'read' || can('read')) return <Outlet />;
  const { label } = destination;
  return (
    <>
      <PageHeader key={label} title={label} />
      <NeedsScope scope="read" what={name === '' ? 'the overview' : label.toLowerCase()} />
    </>
  );
}
