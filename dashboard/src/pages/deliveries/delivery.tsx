/** One delivery: its attempts, what comes next, and the same request as a signed command. */
import { Accordion, Alert, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { DeliveryDetail, WebhookDetail } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { useAnnouncedChange } from '../../parts/announce.ts';
import { JsonView } from '../../parts/code.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { count, duration, many, uncapitalized } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { ErrorBox, type Fact, Facts, PageHeader, PageLink, Section } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Prose, Time, UrlText, useNow } from '../../parts/values.tsx';
import { ask } from '../../queries/list.ts';
import { deliveryQuery, webhookQuery } from '../../queries/webhooks.ts';
import { NextAttempt } from '../webhooks/deliveries.tsx';
import { type Wait, waitOf } from '../webhooks/health.ts';
import type { Attempt } from './attempt.ts';
import { AttemptView } from './attempt.tsx';

export function DeliveryPage() {
  const { deliveryId } = useParams({ from: '/deliveries/$deliveryId' });
  return (
    <Loaded query={deliveryQuery(deliveryId)} title="Delivery" scope="webhooks" what="deliveries">
      {(delivery) => <Shown delivery={delivery} />}
    </Loaded>
  );
}

function Shown({ delivery }: { delivery: DeliveryDetail }) {
  const { id, webhookId, eventId, eventType, state, origin, event } = delivery;
  useAnnouncedChange(
    delivery,
    (now, before) => before.state === 'waiting' && now.state !== 'waiting' && `Delivery: ${now.state}`,
  );
  // The webhook may be gone; its deliveries are kept for a while.
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  const facts: Fact[] = [
    [
      'Webhook',
      <PageLink key="webhook" to="/webhooks/$webhookId" params={{ webhookId }} display="block" miw={0}>
        {webhook === undefined ? webhookId : <UrlText url={webhook.url} />}
      </PageLink>,
    ],
    [
      'Event',
      <PageLink key="event" to="/events/$eventId" params={{ eventId }}>
        {eventType}
      </PageLink>,
    ],
  ];
  if (event.jobId !== undefined) {
    facts.push([
      'Run',
      <PageLink key="run" to="/runs/$jobId" params={{ jobId: event.jobId }}>
        {event.workflowId}
      </PageLink>,
    ]);
  }
  facts.push(
    ['Created', <Time key="made" at={delivery.createdAt} />],
    ['Caused by', ORIGINS[origin]],
    ['Attempts', count(delivery.attempt)],
  );
  return (
    <>
      <PageHeader
        title={`Delivery of ${eventType}`}
        up={[
          <PageLink key="webhooks" to="/webhooks">
            Webhooks
          </PageLink>,
          <PageLink key="webhook" to="/webhooks/$webhookId" params={{ webhookId }}>
            {hostOf(webhook?.url) ?? webhookId}
          </PageLink>,
        ]}
        id={id}
        meta={<StateBadge state={state} />}
        actions={<Actions delivery={delivery} />}
      />
      <Stack gap="lg">
        <Outcome delivery={delivery} webhook={webhook} />
        <Facts facts={facts} />
        <Section title="Attempts" isBare>
          <Attempts delivery={delivery} webhook={webhook} />
        </Section>
        <Section title="Request body" isBare>
          <JsonView value={event} label="The body as it is sent" />
        </Section>
      </Stack>
    </>
  );
}

const ORIGINS: Record<DeliveryDetail['origin'], string> = {
  event: 'an event',
  test: 'a test',
  replay: 'a replay',
};

/** Why it has not arrived, and what comes next. */
function Outcome({ delivery, webhook }: { delivery: DeliveryDetail; webhook: WebhookDetail | undefined }) {
  const { state, lastAttempt, attempt } = delivery;
  const wait = waitOf(delivery, webhook, useNow());
  if (state === 'delivered') return null;
  if (state === 'canceled') {
    return (
      <Alert color="gray" icon={<Icon name="ban" />} title="It was canceled">
        Its webhook was unsubscribed before it arrived.
      </Alert>
    );
  }
  const hasFailed = lastAttempt !== null && lastAttempt.outcome !== 'ok';
  if (!hasFailed && (wait === undefined || wait.why === null)) return null;
  const isPaused = webhook?.state === 'paused';
  return (
    <Alert
      color={state === 'dead' ? 'red' : isPaused && !hasFailed ? 'gray' : 'orange'}
      icon={<Icon name={isPaused && !hasFailed ? 'pause' : 'warning'} />}
      title={
        <span style={{ overflowWrap: 'anywhere' }}>
          {hasFailed ? (
            <Prose text={lastAttempt.message} />
          ) : (
            <>
              It waits: <Prose text={uncapitalized(wait?.why ?? '')} />
            </>
          )}
        </span>
      }
    >
      {state === 'dead' ? (
        `Given up after ${many(attempt, 'attempt')}. Once the receiver is fixed, send it again.`
      ) : (
        <>
          {hasFailed && `Attempt ${count(attempt)} failed. `}
          {wait !== undefined && <WhatNext wait={wait} isPaused={isPaused} isTold={!hasFailed} />}
        </>
      )}
    </Alert>
  );
}

/** @param props.isTold the reason stands above */
function WhatNext({
  wait: { why, at },
  isPaused,
  isTold,
}: {
  wait: Wait;
  isPaused: boolean;
  isTold: boolean;
}) {
  if (isPaused) return 'The webhook is paused: attempts go on when it is resumed.';
  if (why === null) return <NextAttempt at={at} />;
  return (
    <>
      {!isTold && (
        <>
          <Prose text={why} />.{' '}
        </>
      )}
      <NextAttempt at={at} what="The next attempt at this webhook" /> Once one succeeds, what waits follows.
    </>
  );
}

function Attempts({ delivery, webhook }: { delivery: DeliveryDetail; webhook: WebhookDetail | undefined }) {
  const { attempts, attempt, lastAttempt } = delivery;
  const wait = waitOf(delivery, webhook, useNow());
  if (attempts.length === 0) {
    return (
      <Text size="sm" c="dimmed" component="div">
        {attempt > 0 ? (
          `The details of ${many(attempt, 'attempt')} are no longer kept; the last one: ${lastAttempt?.message ?? ''}`
        ) : wait === undefined ? (
          'The first one is under way.'
        ) : (
          <>
            None yet
            {wait.why === null ? (
              <>
                . <NextAttempt at={wait.at} />
              </>
            ) : (
              ': it waits, for the reason above.'
            )}
          </>
        )}
      </Text>
    );
  }
  const newest = attempts.at(-1)?.number;
  return (
    <Accordion
      multiple
      // The newest is open, also when another one is made.
      key={newest}
      defaultValue={[String(newest)]}
      variant="contained"
      chevronPosition="left"
      order={3}
    >
      {attempts.toReversed().map((one) => (
        <Accordion.Item key={one.number} value={String(one.number)}>
          <Accordion.Control>
            <Line attempt={one} />
          </Accordion.Control>
          <Accordion.Panel>
            <AttemptView attempt={one} />
          </Accordion.Panel>
        </Accordion.Item>
      ))}
    </Accordion>
  );
}

function Line({
  attempt: { number, outcome, status, startedAt, durationMs, message },
}: {
  attempt: Attempt;
}) {
  return (
    <Group gap="md" style={{ rowGap: 0 }} miw={0}>
      <StateBadge state={outcome === 'ok' ? 'delivered' : 'failed'} label={`Attempt ${count(number)}`} />
      <Text span size="sm" fw={600} className="numbers" w={64}>
        {status ?? outcome}
      </Text>
      <Text span size="sm" truncate c="dimmed" visibleFrom="sm" style={{ flex: '1 1 0' }}>
        <Prose text={message} />
      </Text>
      <Text span size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }} ms="auto">
        <Text span inherit visibleFrom="xs" className="numbers">
          {duration(durationMs)} ·{' '}
        </Text>
        <Time at={startedAt} />
      </Text>
    </Group>
  );
}

function Actions({ delivery: { id, state } }: { delivery: DeliveryDetail }) {
  const navigate = useNavigate();
  const label = state === 'waiting' ? 'Retry now' : 'Send again';
  const resend = useAction({
    run: () => flowhook.deliveries.replay(id),
    changes: ['deliveries', 'webhooks'],
    done: ({ message, retried }) => (retried ? message : `${message}: this is the new delivery`),
    onDone: ({ deliveryId }) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId } }),
  });
  useShortcut('r', label, () => resend.act());
  return (
    <>
      <SignedCurl deliveryId={id} />
      <ActionButton isMain icon={state === 'waiting' ? 'refresh' : 'send'} action={resend}>
        {label}
      </ActionButton>
    </>
  );
}

function hostOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : (URL.parse(url)?.host ?? url);
}

/** The signature ends after five minutes: a dialog that stays open gets a new one before. */
const RENEW_MS = 4 * 60_000;

const curlQuery = (deliveryId: string) =>
  ask(['curl', deliveryId], (signal) => flowhook.deliveries.curl(deliveryId, { signal }), {
    staleTime: 0,
    gcTime: 0,
    refetchInterval: RENEW_MS,
  });

/** The delivery as a command that a receiver takes: with a signature of now. */
function SignedCurl({ deliveryId }: { deliveryId: string }) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <ActionButton icon="copy" action={open}>
        Signed curl
      </ActionButton>
      <Modal opened={isOpen} onClose={close} title="The same request from your shell" size="xl">
        {isOpen && <Command deliveryId={deliveryId} />}
      </Modal>
    </>
  );
}

function Command({ deliveryId }: { deliveryId: string }) {
  const { data, error, refetch } = useQuery(curlQuery(deliveryId));
  if (error !== null) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  return (
    <Stack gap="sm">
      <Text size="sm">
        It is signed anew, so that a receiver accepts it.{' '}
        {data !== undefined && (
          <>
            The signature expires <Time at={data.validUntil} />.
          </>
        )}
      </Text>
      <CommandLine command={data?.command ?? '…'} />
      {data !== undefined && data.hidden.length > 0 && (
        <Text size="sm" c="dimmed">
          The values of {data.hidden.join(', ')} are replaced by ***: they are never shown.
        </Text>
      )}
    </Stack>
  );
}
