/** Who may do what, and who has done what. */
import { Tabs } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';

export function KeyTabs({ shown }: { shown: 'keys' | 'audit' }) {
  const navigate = useNavigate();
  return (
    <Tabs
      value={shown}
      onChange={(value) => void navigate({ to: value === 'audit' ? '/keys/audit' : '/keys' })}
      mb="md"
    >
      <Tabs.List aria-label="API keys">
        <Tabs.Tab value="keys">Keys</Tabs.Tab>
        <Tabs.Tab value="audit">Audit</Tabs.Tab>
      </Tabs.List>
    </Tabs>
  );
}
