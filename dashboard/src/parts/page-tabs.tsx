/** Tabs that are routes of their own. */
import { Tabs } from '@mantine/core';
import { type LinkProps, useNavigate } from '@tanstack/react-router';

export interface PageTab {
  label: string;
  to: LinkProps['to'];
}

/** @param label of all of them, for those who hear the page */
export function PageTabs<Name extends string>({
  label,
  tabs,
  shown,
}: {
  label: string;
  tabs: Readonly<Record<Name, PageTab>>;
  shown: Name;
}) {
  const navigate = useNavigate();
  return (
    <Tabs value={shown} onChange={(value) => void navigate({ to: tabs[value as Name].to })} mb="md">
      <Tabs.List aria-label={label}>
        {Object.entries<PageTab>(tabs).map(([name, tab]) => (
          <Tabs.Tab key={name} value={name}>
            {tab.label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
    </Tabs>
  );
}
