/** What happened, and what can happen. */
import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';

export function EventTabs({ shown }: { shown: 'log' | 'catalogue' }) {
  const navigate = useNavigate();
  return (
    <Tabs
      value={shown}
      onChange={(value) => void navigate({ to: value === 'catalogue' ? '/events/catalogue' : '/events' })}
      mb="md"
    >
      <Tabs.List aria-label="Events">
        <Tabs.Tab value="log">Log</Tabs.Tab>
        <Tabs.Tab value="catalogue">Catalogue</Tabs.Tab>
      </Tabs.List>
    </Tabs>
  );
}
