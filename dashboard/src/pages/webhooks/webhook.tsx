/** The page of one webhook: its state, deliveries, rule, decisions, health and settings. */
import { Alert, Modal, SimpleGrid, Stack, Tabs, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { WebhookDetail } from '../../../../client/src/flowhook-client.ts';
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
import { Prose, Time, UrlText } from '../../parts/values.tsx';
import { readAgain } from '../../queries/read-again.ts';
import { dayUsageQuery } from '../../queries/team.ts';
import { webhookQuery } from '../../queries/webhooks.ts';
import { WebhookDecisions } from './decisions.tsx';
import { NextAttempt, WebhookDeliveries } from './deliveries.tsx';
import { addressOf, isMail } from './destination.ts';
import { healthOf, percent, shortEvent, standing } from './health.ts';
import { digestWords, formOf, hasRule } from './rule/rule-form.ts';
import { RuleTab } from './rule/rule-tab.tsx';
import { WebhookSecret, WebhookSettings } from './settings.tsx';
import { isUnverified, Unverified } from './unverified.tsx';

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
        title={webhook.name ?? addressOf(webhook.url)}
        up={<PageLink to="/webhooks">Webhooks</PageLink>}
        id={webhook.id}
        meta={
          <>
            <StateBadge state={state} label={isUnverified(webhook) ? 'Not verified' : undefined} />
            <InspectorLink url={webhook.url} />
          </>
        }
        actions={<WebhookActions webhook={webhook} />}
      />
      <Stack gap="lg">
        {isUnverified(webhook) ? <Unverified webhook={webhook} /> : <Trouble webhook={webhook} />}
        <FilterMistake webhook={webhook} />
        <WebhookFacts webhook={webhook} />
        <WebhookTabs webhook={webhook} />
      </Stack>
    </>
  );
}

/** A link to the inspector, if the URL belongs to one. */
function InspectorLink({ url }: { url: string }) {
  const inspectorId = /\/inspect\/(insp_\w+)/.exec(url)?.[1];
  if (inspectorId === undefined) return null;
  return (
    <PageLink to="/inspector/$inspectorId" params={{ inspectorId }} fz="sm">
      View in inspector
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
        <Tabs.Tab value="rule">Rule</Tabs.Tab>
        {(hasRule(formOf(webhook)) || tab === 'decisions') && (
          <Tabs.Tab value="decisions">Decisions</Tabs.Tab>
        )}
        <Tabs.Tab value="health">Health</Tabs.Tab>
        <Tabs.Tab value="settings">Settings</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="deliveries">
        <WebhookDeliveries webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="rule">
        <RuleTab webhook={webhook} key={JSON.stringify(formOf(webhook))} />
      </Tabs.Panel>
      <Tabs.Panel value="decisions">
        <WebhookDecisions webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="health">
        <WebhookCharts webhookId={webhook.id} />
      </Tabs.Panel>
      <Tabs.Panel value="settings">
        <Stack gap="lg">
          {!isMail(webhook.url) && <WebhookSecret webhookId={webhook.id} />}
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
        Deliveries wait until you resume the webhook. After about four days they are given up; use “Replay” to
        resend them.
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
            No attempt has succeeded yet. The first one failed <Time at={since} as="at" />
          </>
        ) : (
          <>
            Every attempt has failed <Time at={since} as="since" />
          </>
        )
      }
    >
      {breaker.reason === null ? (
        'Failed deliveries are retried with increasing delays. '
      ) : (
        <>
          Backing off <Time at={breaker.since} as="since" />: <Prose text={uncapitalized(breaker.reason)} />.{' '}
        </>
      )}
      {breaker.nextAttemptAt === null ? (
        'No delivery is waiting, so the next event triggers the next attempt.'
      ) : (
        <NextAttempt at={breaker.nextAttemptAt} />
      )}{' '}
      Waiting deliveries are sent after the first success. Use “Replay” to resend those that were given up.
    </Alert>
  );
}

/** The last record on which the filter failed, so that it did not match. */
function FilterMistake({ webhook: { filterMistake } }: { webhook: WebhookDetail }) {
  if (filterMistake === null) return null;
  const { at, eventId, recordId, message } = filterMistake;
  return (
    <Alert color="orange" icon={<Icon name="warning" />} title="The filter fails on some records">
      <Prose text={message} />. This counts as no match. Last seen <Time at={at} />
      {recordId !== null && (
        <>
          , for the record <code>{recordId}</code>
        </>
      )}{' '}
      in{' '}
      <PageLink to="/events/$eventId" params={{ eventId }} c="inherit" underline="always">
        this event
      </PageLink>
      .
    </Alert>
  );
}

function WebhookFacts({ webhook }: { webhook: WebhookDetail }) {
  const { name, url, workflowId, events, digest, verifiedAt, lastSuccessAt, createdAt } = webhook;
  const gathered = digestWords(digest);
  const { data: usage } = useQuery(dayUsageQuery({ webhookId: webhook.id }));
  const health = usage === undefined ? undefined : healthOf(usage);
  return (
    <Facts
      facts={[
        ...(name === null
          ? []
          : [[isMail(url) ? 'Mail address' : 'URL', <UrlText key="url" url={url} />] as const]),
        [
          'Workflow',
          workflowId === null ? (
            'All'
          ) : (
            <PageLink key="workflow" to="/workflows/$workflowId" params={{ workflowId }}>
              {workflowId}
            </PageLink>
          ),
        ],
        [
          'Events',
          <span key="events" title={events.join('\n')}>
            {events.includes('*') ? 'All' : events.map(shortEvent).join(', ')}
          </span>,
        ],
        ...(gathered === null ? [] : [['Sent', `Gathered, ${gathered}`] as const]),
        ['Success (24 h)', health === undefined || health.success === null ? '–' : percent(health.success)],
        ['Response time (p95)', health === undefined || health.p95Ms === null ? '–' : duration(health.p95Ms)],
        ['Last delivered', <Time key="last" at={lastSuccessAt} none="Never" />],
        ...(verifiedAt === null ? [] : [['Verified', <Time key="verified" at={verifiedAt} />] as const]),
        ['Subscribed', <Time key="created" at={createdAt} />],
      ]}
    />
  );
}

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
    done: () => 'Resumed. Waiting deliveries are sent now.',
  });
  const unsubscribe = useAction({
    run: () => flowhook.webhooks.unsubscribe(id),
    done: ({ message }) => message,
    // Leaves the page first, because the webhook can no longer be fetched.
    onDone: () =>
      void navigate({ to: '/webhooks' }).then(() => {
        for (const kind of changes) readAgain({ kind, ids: null });
      }),
  });
  useShortcut('t', 'Send a test event', () => test.act());
  return (
    <>
      {isUnverified(webhook) ? null : state === 'paused' ? (
        <ActionButton icon="play" action={resume} label="Resume" />
      ) : (
        <ActionButton icon="pause" action={pausing.open} label="Pause" />
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
              It receives no more events, and its waiting deliveries are canceled.
              {!isMail(url) && ' If you subscribe the URL again, it gets a new secret.'}
            </>
          ),
          verb: 'Unsubscribe',
        }}
        label="Unsubscribe"
      />
      <ActionButton isMain icon="send" action={test} label="Send test event" />
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
    done: () => 'Paused. Deliveries wait until you resume the webhook.',
    onDone: onClose,
  });
  return (
    <ActionForm action={pause} verb="Pause" onBack={onClose}>
      <Text size="sm">
        While the webhook is paused, its deliveries wait for up to about four days. They are sent when you
        resume it.
      </Text>
      <TextInput
        label="Reason"
        description="Optional. Shown on the webhook while it is paused."
        placeholder="CRM migration"
        value={reason}
        onChange={({ currentTarget }) => setReason(currentTarget.value)}
        maxLength={200}
        data-autofocus
      />
    </ActionForm>
  );
}

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
