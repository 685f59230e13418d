/** The tabs of a workflow that are short: its runs, its webhooks, and the calls of programs. */
import { Anchor, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { serviceUrl } from '../../client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { PageLink } from '../../parts/page.tsx';
import { workflowQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { RunTable } from '../runs/runs.tsx';
import { useSubscribeDialog } from '../webhooks/subscribe.tsx';
import { WebhookTable } from '../webhooks/webhooks.tsx';
import { DataEmpty } from './data.tsx';
import { LANGUAGES, type Language, snippets } from './snippets.ts';

export function RunsTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  // It cannot be queued: nothing of what a table of runs proposes would work.
  if (workflow?.source.type === 'push' && workflow.lastJob === null && workflow.currentJob === null) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  return <RunTable of={workflowId} />;
}

/** The webhooks of one workflow. */
export function WebhooksTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { can } = useSession();
  const { open, dialog } = useSubscribeDialog({ workflowId });
  return (
    <>
      <WebhookTable
        of={workflowId}
        actions={
          can('webhooks') && (
            <ActionButton isMain icon="plus" action={open}>
              Subscribe
            </ActionButton>
          )
        }
      />
      {dialog}
    </>
  );
}

/** How programs read, run and follow this workflow: with its id and the address of this service. */
export function ApiTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const { can } = useSession();
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
          aria-label="With"
          data={[...LANGUAGES]}
          value={language}
          onChange={(value) => set({ with: value === 'curl' ? undefined : (value as Language) })}
          style={{ flexWrap: 'wrap' }}
        />
        <Text size="sm" c="dimmed">
          The key is read from the environment: <code>export FLOWHOOK_KEY=…</code>{' '}
          {can('admin') && (
            <PageLink to="/keys" underline="always">
              Make a key for it
            </PageLink>
          )}{' '}
          For Zapier, n8n and others there are{' '}
          <Anchor inherit href="/docs/guide/guides/clients.html" underline="always">
            integrations
          </Anchor>
          .
        </Text>
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
          <CommandLine command={code} label={`Copy: ${title}`} />
        </section>
      ))}
    </Stack>
  );
}
