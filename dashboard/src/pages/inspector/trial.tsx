/** The webhooks that call an inspector, each with the buttons that make something arrive. */
import { Button, Group, Paper, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { WebhookDetail, Workflow } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { workflowQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { standing } from '../webhooks/health.ts';
import { runnableOf } from '../welcome/steps.ts';
import { useRunNow } from '../workflows/use-run-now.ts';

/** Others are on the page of webhooks. */
const SHOWN = 5;

export function Trial({ webhooks }: { webhooks: readonly WebhookDetail[] }) {
  return (
    <Paper p="sm" component="section" aria-label="Who calls it">
      <Stack gap="xs">
        {webhooks.slice(0, SHOWN).map((webhook) => (
          <Caller key={webhook.id} webhook={webhook} />
        ))}
      </Stack>
    </Paper>
  );
}

function Caller({ webhook }: { webhook: WebhookDetail }) {
  const { id, workflowId, events } = webhook;
  const { state } = standing(webhook);
  const test = useAction({
    run: () => flowhook.webhooks.test(id),
    changes: ['deliveries', 'webhooks', 'inspectors'],
    done: ({ message }) => message,
  });
  return (
    <Group gap="sm" justify="space-between">
      <Text size="sm">
        Subscribed to {events.includes('*') ? 'all events' : events.join(', ')} of{' '}
        {workflowId === null ? (
          'all workflows'
        ) : (
          <PageLink to="/workflows/$workflowId" params={{ workflowId }} underline="always">
            {workflowId}
          </PageLink>
        )}
        {' · '}
        <PageLink to="/webhooks/$webhookId" params={{ webhookId: id }} underline="always">
          the webhook
        </PageLink>{' '}
        {state !== 'active' && <StateBadge state={state} />}
      </Text>
      <Group gap="xs">
        {workflowId !== null && <RunIt workflowId={workflowId} />}
        <Button
          leftSection={<Icon name="send" size={14} />}
          onClick={() => test.act()}
          loading={test.isActing}
        >
          Send test event
        </Button>
      </Group>
    </Group>
  );
}

/** Only what can be run by a press. */
function RunIt({ workflowId }: { workflowId: string }) {
  const { can } = useSession();
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  if (workflow === undefined || !can('queue') || runnableOf([workflow]).length === 0) return null;
  return <RunButton workflow={workflow} />;
}

function RunButton({ workflow: { id, name } }: { workflow: Workflow }) {
  const { run, isRunning } = useRunNow(id, name);
  return (
    <Button leftSection={<Icon name="play" size={14} />} onClick={() => run()} loading={isRunning}>
      Run {name}
    </Button>
  );
}
