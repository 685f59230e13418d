/** The page of one webhook: its state, deliveries, settings, and how to verify signatures. */
import { Alert, Loader, Stack, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { WebhookDetail } from 'flowhook-client';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Facts } from '../../parts/facts.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { IdText } from '../../parts/id-text.tsx';
import { PageLink } from '../../parts/link.tsx';
import { NeedsScope } from '../../parts/needs-scope.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { Prose } from '../../parts/prose.tsx';
import { duration } from '../../parts/quantity.ts';
import { uncapitalized } from '../../parts/sentence.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { dayUsageQuery } from '../../queries/usage.ts';
import { webhookQuery } from '../../queries/webhooks.ts';
import { useSession } from '../../session.tsx';
import { healthOf, percent, shortEvent, standing } from './health.ts';
import { NextAttempt } from './next-attempt.tsx';
import { Snippets } from './snippets-view.tsx';
import { WebhookActions } from './webhook-actions.tsx';
import { WebhookCharts } from './webhook-charts.tsx';
import { WebhookDeliveries } from './webhook-deliveries.tsx';
import { WebhookSecret } from './webhook-secret.tsx';
import { WebhookSettings } from './webhook-settings.tsx';

export function WebhookPage() {
  const { webhookId } = useParams({ from: '/webhooks/$webhookId' });
  const { can } = useSession();
  const {
    data: webhook,
    error,
    refetch,
  } = useQuery({ ...webhookQuery(webhookId), enabled: can('webhooks') });
  if (!can('webhooks')) {
    return (
      <>
        <PageHeader title="Webhook" />
        <NeedsScope scope="webhooks" what="webhooks" />
      </>
    );
  }
  if (error !== null && webhook === undefined) {
    return (
      <>
        <PageHeader title="Webhook" />
        <ErrorBox error={error} onRetry={() => void refetch()} />
      </>
    );
  }
  if (webhook === undefined) return <Loader aria-label="Loading" size="sm" m="xl" />;
  const { state } = standing(webhook);
  return (
    <>
      <PageHeader
        title={webhook.url}
        parents={[
          <PageLink key="webhooks" to="/webhooks">
            Webhooks
          </PageLink>,
          <IdText key="id" id={webhook.id} />,
        ]}
        meta={
          <>
            <StateBadge state={state} />
            <InspectorLink url={webhook.url} />
          </>
        }
        actions={<WebhookActions webhook={webhook} />}
      />
      <Stack gap="lg">
        <Trouble webhook={webhook} />
        <WebhookFacts webhook={webhook} />
        <WebhookTabs webhook={webhook} />
      </Stack>
    </>
  );
}

/** To what has arrived, where the URL is one of our inspectors. */
function InspectorLink({ url }: { url: string }) {
  const inspectorId = /\/inspect\/(insp_\w+)/.exec(url)?.[1];
  if (inspectorId === undefined) return null;
  return (
    <PageLink to="/inspector/$inspectorId" params={{ inspectorId }} fz="sm">
      See what arrives
    </PageLink>
  );
}

function WebhookTabs({ webhook }: { webhook: WebhookDetail }) {
  const filters = useFilters('tab');
  const tab = filters.values.tab ?? 'deliveries';
  return (
    <Tabs
      value={tab}
      onChange={(value) => filters.set({ tab: value === 'deliveries' || value === null ? undefined : value })}
      keepMounted={false}
    >
      <Tabs.List mb="md">
        <Tabs.Tab value="deliveries">Deliveries</Tabs.Tab>
        <Tabs.Tab value="health">Health</Tabs.Tab>
        <Tabs.Tab value="settings">Settings</Tabs.Tab>
        <Tabs.Tab value="verify">Verify</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="deliveries">
        <WebhookDeliveries webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="health">
        <WebhookCharts webhookId={webhook.id} />
      </Tabs.Panel>
      <Tabs.Panel value="settings">
        <Stack gap="lg">
          <WebhookSecret webhookId={webhook.id} />
          <WebhookSettings webhook={webhook} key={JSON.stringify(webhook.settings)} />
        </Stack>
      </Tabs.Panel>
      <Tabs.Panel value="verify">
        <Snippets />
      </Tabs.Panel>
    </Tabs>
  );
}

function Trouble({ webhook }: { webhook: WebhookDetail }) {
  const { state, since, why } = standing(webhook);
  if (state === 'active') return null;
  if (state === 'paused') {
    return (
      <Alert
        color="gray"
        icon={<Icon name="pause" />}
        title={
          <span style={{ overflowWrap: 'anywhere' }}>
            Paused <Time at={since} as="since" />
            {why !== null && (
              <>
                : <Prose text={why} />
              </>
            )}
          </span>
        }
      >
        What is due waits until it is resumed. What has waited for some four days is given up, and can be sent
        again with “Replay”.
      </Alert>
    );
  }
  const { breaker, lastSuccessAt } = webhook;
  return (
    <Alert
      color="orange"
      icon={<Icon name="warning" />}
      title={
        lastSuccessAt === null ? (
          <>
            No attempt has succeeded yet: the first one failed <Time at={since} as="at" />
          </>
        ) : (
          <>
            Every attempt has failed <Time at={since} as="since" />
          </>
        )
      }
    >
      {breaker.reason === null ? (
        'Each delivery is tried again at growing intervals. '
      ) : (
        <>
          Held back <Time at={breaker.since} as="since" />: <Prose text={uncapitalized(breaker.reason)} />.{' '}
        </>
      )}
      {breaker.nextAttemptAt === null ? (
        'No delivery waits: the next event is the next attempt.'
      ) : (
        <NextAttempt at={breaker.nextAttemptAt} />
      )}{' '}
      Once one succeeds, the others follow; those that were given up can be sent again with “Replay”.
    </Alert>
  );
}

function WebhookFacts({ webhook }: { webhook: WebhookDetail }) {
  const { workflowId, events, lastSuccessAt, createdAt } = webhook;
  const { data: usage } = useQuery(dayUsageQuery({ webhookId: webhook.id }));
  const health = usage === undefined ? undefined : healthOf(usage);
  return (
    <Facts
      facts={[
        [
          'Workflow',
          workflowId === null ? (
            'all'
          ) : (
            <PageLink key="workflow" to="/workflows/$workflowId" params={{ workflowId }}>
              {workflowId}
            </PageLink>
          ),
        ],
        [
          'Events',
          <span key="events" title={events.join('\n')}>
            {events.includes('*') ? 'all' : events.map(shortEvent).join(', ')}
          </span>,
        ],
        ['Success, 24 h', health === undefined || health.success === null ? '–' : percent(health.success)],
        ['Response time (p95)', health === undefined || health.p95Ms === null ? '–' : duration(health.p95Ms)],
        ['Last delivered', <Time key="last" at={lastSuccessAt} none="never" />],
        ['Subscribed', <Time key="created" at={createdAt} />],
      ]}
    />
  );
}
