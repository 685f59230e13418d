/** Tabs that are routes of their own: of the events, and of the API keys. */
import { Tabs } from '@mantine/core';
import { type LinkProps, useNavigate } from '@tanstack/react-router';

const SETS = {
  Events: { Log: '/events', Catalogue: '/events/catalogue' },
  'API keys': { Keys: '/keys', Audit: '/keys/audit' },
} as const;

/** @param props.of also what the tabs are called to those who hear the page */
export function PageTabs<Of extends keyof typeof SETS>({
  of,
  shown,
}: {
  of: Of;
  shown: keyof (typeof SETS)[Of] & string;
}) {
  const navigate = useNavigate();
  const tabs: Record<string, NonNullable<LinkProps['to']>> = SETS[of];
  return (
    <Tabs value={shown} onChange={(label) => label !== null && void navigate({ to: tabs[label] })} mb="md">
      <Tabs.List aria-label={of}>
        {Object.keys(tabs).map((label) => (
          <Tabs.Tab key={label} value={label}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
    </Tabs>
  );
}
