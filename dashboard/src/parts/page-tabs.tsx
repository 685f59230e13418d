/** Tabs that are separate routes. */
import { Tabs } from '@mantine/core';
import { type LinkProps, useNavigate } from '@tanstack/react-router';

const SETS = {
  Events: { Log: '/events', Catalog: '/events/catalog' },
  'API keys': { Keys: '/keys', Audit: '/keys/audit' },
} as const;

/** @param props.of also labels the tabs for screen readers */
export function PageTabs<Of extends keyof typeof SETS>(props: {
  of: Of;
  shown: keyof (typeof SETS)[Of] & string;
}) {
  const { of, shown } = props;
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
