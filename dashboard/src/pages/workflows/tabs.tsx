/** The tabs of a workflow for runs, webhooks and API calls. */
import { Anchor, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { serviceUrl } from '../../client.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Note } from '../../parts/values.tsx';
import { workflowQuery } from '../../queries/workflows.ts';
import { KeyVariable } from '../../session.tsx';
import { RunTable } from '../runs/runs.tsx';
import { SubscribeButton } from '../webhooks/subscribe.tsx';
import { WebhookTable } from '../webhooks/webhooks.tsx';
import { DataEmpty } from './data.tsx';
import { LANGUAGES, type Language, snippets } from './snippets.ts';

export function RunsTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  // An empty table of runs would suggest queueing a run, but a workflow of type `push` cannot be queued.
  if (workflow?.source.type === 'push' && workflow.lastJob === null && workflow.currentJob === null) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  return <RunTable of={workflowId} />;
}

export function WebhooksTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  return <WebhookTable of={workflowId} actions={<SubscribeButton defaults={{ workflowId }} />} />;
}

/** Code samples with the id of the workflow and the address of the service. */
export function ApiTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const { values, set } = useFilters('with');
  const language = LANGUAGES.find(({ value }) => value === values.with)?.value ?? 'curl';
  const all = snippets(language, {
    workflowId,
    url: serviceUrl,
    isPush: workflow?.source.type === 'push',
  });
  return (
    <Stack gap="lg" maw={900}>
      <Stack gap="xs" align="flex-start">
        <SegmentedControl
          aria-label="Language"
          data={[...LANGUAGES]}
          value={language}
          onChange={(value) => set({ with: value === 'curl' ? undefined : (value as Language) })}
          style={{ flexWrap: 'wrap' }}
        />
        <Note>
          The samples read the key from <KeyVariable />. For other languages and tools, see{' '}
          <Anchor inherit href="/docs/guide/guides/clients.html" underline="always">
            clients and integrations
          </Anchor>
          .
        </Note>
      </Stack>
      {all.map(({ title, note, code }) => (
        <section key={title} aria-label={title}>
          <Title order={2} size="h4" mb={4}>
            {title}
          </Title>
          {note !== undefined && (
            <Text size="sm" c="dimmed" mb="xs">
              {note}
            </Text>
          )}
          <CommandLine command={code} label={`Copy code: ${title}`} />
        </section>
      ))}
    </Stack>
  );
}
