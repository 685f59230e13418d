/** How a receiver verifies what it gets, to be copied. */
import { Stack, Tabs, Text } from '@mantine/core';
import { CommandLine } from '../../parts/copy.tsx';
import { SNIPPETS } from './snippets.ts';

export function Snippets() {
  return (
    <Stack gap="sm">
      <Text size="sm" c="dimmed" maw={760}>
        Every delivery follows Standard Webhooks: <code>webhook-id</code>, <code>webhook-timestamp</code> and{' '}
        <code>webhook-signature</code>. Put the secret of the tab Settings into <code>WEBHOOK_SECRET</code>,
        answer 401 to what does not match, and remember ids for five minutes: the same event may come twice.
      </Text>
      <Tabs defaultValue={SNIPPETS[0]?.language} variant="pills" keepMounted={false}>
        <Tabs.List mb="sm" aria-label="Language">
          {SNIPPETS.map(({ language }) => (
            <Tabs.Tab key={language} value={language}>
              {language}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {SNIPPETS.map(({ language, note, code }) => (
          <Tabs.Panel key={language} value={language}>
            <Text size="sm" mb="xs">
              {note}
            </Text>
            <CommandLine command={code.trimEnd()} label={`Copy the ${language}`} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}
