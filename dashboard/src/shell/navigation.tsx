/** The navigation: the pages that the session may see. */
import { NavLink, type NavLinkProps, ScrollArea } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { Scope } from 'flowhook-client';
import type { Ref } from 'react';
import { Icon, type IconName } from '../parts/icon.tsx';
import { useSession } from '../session.tsx';

export interface Destination {
  to:
    | '/'
    | '/workflows'
    | '/runs'
    | '/webhooks'
    | '/inspector'
    | '/events'
    | '/keys'
    | '/reference'
    | '/system';
  label: string;
  icon: IconName;
  /** The scope that the page needs; undefined: none. */
  scope?: Scope;
  /** After `g`. */
  letter: string;
}

export const DESTINATIONS: readonly Destination[] = [
  { to: '/', label: 'Overview', icon: 'home', scope: 'read', letter: 'o' },
  { to: '/workflows', label: 'Workflows', icon: 'workflow', scope: 'read', letter: 'w' },
  { to: '/runs', label: 'Runs', icon: 'play', scope: 'read', letter: 'r' },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhook', scope: 'webhooks', letter: 'h' },
  { to: '/events', label: 'Events', icon: 'bell', scope: 'read', letter: 'e' },
  { to: '/inspector', label: 'Inspector', icon: 'inspector', scope: 'webhooks', letter: 'i' },
  { to: '/keys', label: 'API keys', icon: 'key', scope: 'admin', letter: 'k' },
  { to: '/reference', label: 'API reference', icon: 'api', letter: 'a' },
  { to: '/system', label: 'System', icon: 'system', scope: 'operator', letter: 's' },
];

/** Those that the session may see. */
export function useDestinations(): readonly Destination[] {
  const { can } = useSession();
  return DESTINATIONS.filter(({ scope }) => scope === undefined || can(scope));
}

const Entry = createLink((props: Omit<NavLinkProps, 'href'> & { ref?: Ref<HTMLAnchorElement> }) => (
  <NavLink component="a" {...props} />
));

/** @param props.onGo after a choice: the drawer of a narrow window closes */
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
    </ScrollArea>
  );
}
