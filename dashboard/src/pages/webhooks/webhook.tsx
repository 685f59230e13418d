/** The page of one webhook: its state, deliveries, and settings. */
import { Alert, Modal, SimpleGrid, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { WebhookDetail } from 'flowhook-client';
import { useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { DayChart } from '../../parts/charts.tsx';
import { useFilters } from '../../parts/filters.ts';
import { duration, uncapitalized } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { ErrorBox, Facts, PageHeader, PageLink } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { readAgain } from '../../queries/read-again.ts';
import { dayUsageQuery } from '../../queries/team.ts';
import { webhookQuery } from '../../queries/webhooks.ts';
import { NextAttempt, WebhookDeliveries } from './deliveries.tsx';
import { healthOf, percent, shortEvent, standing } from './health.ts';
import { WebhookSecret, WebhookSettings } from './settings.tsx';

export function WebhookPage() {
  const { webhookId } = useParams({ from: '/webhooks/$webhookId' });
  return (
    <Loaded query={webhookQuery(webhookId)} title="Webhook" scope="webhooks" what="webhooks">
      {(webhook) => <Shown webhook={webhook} />}
    </Loaded>
  );
}

function Shown({ webhook }: { webhook: WebhookDetail }) {
  const { state } = standing(webhook);
  return (
    <>
      <PageHeader
        title={webhook.url}
        up={<PageLink to="/webhooks">Webhooks</PageLink>}
        id={webhook.id}
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

/** What can be done with a webhook. */
function WebhookActions({ webhook }: { webhook: WebhookDetail }) {
  const { id, url, state } = webhook;
  const navigate = useNavigate();
  const [isPausing, pausing] = useDisclosure(false);
  const changes = ['webhooks', 'deliveries'];
  const test = useAction({
    run: () => flowhook.webhooks.test(id),
    changes,
    done: ({ message }) => message,
    onDone: ({ deliveryId }) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId } }),
  });
  const resume = useAction({
    run: () => flowhook.webhooks.resume(id),
    changes,
    done: () => 'Resumed: what was waiting is sent now',
  });
  const unsubscribe = useAction({
    run: () => flowhook.webhooks.unsubscribe(id),
    done: ({ message }) => message,
    // Away from it first: it cannot be read again.
    onDone: () =>
      void navigate({ to: '/webhooks' }).then(() => {
        for (const kind of changes) readAgain({ kind, ids: null });
      }),
  });
  useShortcut('t', 'Send a test event', () => test.act());
  return (
    <>
      {state === 'paused' ? (
        <ActionButton icon="play" action={resume}>
          Resume
        </ActionButton>
      ) : (
        <ActionButton icon="pause" action={pausing.open}>
          Pause
        </ActionButton>
      )}
      <ActionButton
        icon="trash"
        action={unsubscribe}
        asks={{
          title: 'Unsubscribe this webhook?',
          children: (
            <>
              <Text inherit ff="monospace" style={{ overflowWrap: 'anywhere' }}>
                {url}
              </Text>
              is no longer called, and its waiting deliveries are canceled. If it is subscribed again, it gets
              a new secret.
            </>
          ),
          verb: 'Unsubscribe',
        }}
      >
        Unsubscribe
      </ActionButton>
      <ActionButton isMain icon="send" action={test}>
        Send test event
      </ActionButton>
      <Modal opened={isPausing} onClose={pausing.close} title="Pause this webhook">
        <PauseForm webhookId={id} onClose={pausing.close} />
      </Modal>
    </>
  );
}

function PauseForm({ webhookId, onClose }: { webhookId: string; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const pause = useAction({
    run: () =>
      flowhook.webhooks.pause(webhookId, reason.trim() === '' ? {} : { reason: reason.trim().slice(0, 200) }),
    changes: ['webhooks', 'deliveries'],
    done: () => 'Paused: deliveries wait until it is resumed',
    onDone: onClose,
  });
  return (
    <ActionForm action={pause} verb="Pause" onBack={onClose}>
      <Text size="sm">Nothing is lost: deliveries wait, and are sent when it is resumed.</Text>
      <TextInput
        label="Reason"
        description="Shown to those who find it paused"
        placeholder="The CRM is being moved"
        value={reason}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
        maxLength={200}
        data-autofocus
      />
    </ActionForm>
  );
}

/** The last 24 hours of a webhook, by the hour: what arrived, and how long its answers took. */
function WebhookCharts({ webhookId }: { webhookId: string }) {
  const { data, error, refetch } = useQuery(dayUsageQuery({ webhookId }));
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <DayChart of="Deliveries" usage={data} />
      <DayChart of="Response time" usage={data} />
    </SimpleGrid>
  );
}
