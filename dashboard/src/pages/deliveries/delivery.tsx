/** The page of one delivery: its attempts, the next step, and the request as a signed curl command. */
import { Accordion, Alert, Group, Modal, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { DeliveryDetail, WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { useAnnouncedChange } from '../../parts/announce.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { count, duration, many, uncapitalized } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { BodyView } from '../../parts/messages/message-view.tsx';
import { ErrorBox, type Fact, Facts, PageHeader, PageLink, Section } from '../../parts/page.tsx';
import { StateBadge, stateName } from '../../parts/state-badge.tsx';
import { Note, Prose, Time, UrlText, useNow } from '../../parts/values.tsx';
import { ask } from '../../queries/list.ts';
import { deliveryQuery, webhookQuery } from '../../queries/webhooks.ts';
import { NextAttempt } from '../webhooks/deliveries.tsx';
import { addressOf, isMail } from '../webhooks/destination.ts';
import { waitOf } from '../webhooks/health.ts';
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
  const { id, webhookId, eventId, eventType, state, origin, event, body } = delivery;
  useAnnouncedChange(
    delivery,
    (now, before) =>
      before.state === 'waiting' && now.state !== 'waiting' && `Delivery: ${stateName(now.state)}`,
  );
  // The webhook may have been deleted. Its deliveries are kept for a while.
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  const isLetter = webhook !== undefined && isMail(webhook.url);
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
    ['Origin', ORIGINS[origin]],
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
        actions={<Actions delivery={delivery} isLetter={isLetter} />}
      />
      <Stack gap="lg">
        <Outcome delivery={delivery} webhook={webhook} />
        <Facts facts={facts} />
        <Section title="Attempts" isBare>
          <Attempts delivery={delivery} webhook={webhook} />
        </Section>
        <Section title={isLetter ? 'Mail' : 'Request body'} isBare>
          <BodyView body={body} label="Request body" />
        </Section>
      </Stack>
    </>
  );
}

const ORIGINS: Record<DeliveryDetail['origin'], string> = {
  event: 'Event',
  test: 'Test',
  replay: 'Replay',
};

/** Why the delivery has not succeeded, and what happens next. */
function Outcome({ delivery, webhook }: { delivery: DeliveryDetail; webhook: WebhookDetail | undefined }) {
  const { state, lastAttempt, attempt } = delivery;
  const wait = waitOf(delivery, webhook, useNow());
  if (state === 'delivered') return null;
  if (state === 'canceled') {
    return (
      <Alert color="gray" icon={<Icon name="ban" />} title="Canceled">
        The webhook was unsubscribed before this event was delivered.
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
              Waiting: <Prose text={uncapitalized(wait?.why ?? '')} />
            </>
          )}
        </span>
      }
    >
      {state === 'dead' ? (
        `Given up after ${many(attempt, 'attempt')}. Fix the receiver, then resend the event.`
      ) : (
        <>
          {hasFailed && `Attempt ${count(attempt)} failed. `}
          {hasFailed && wait !== undefined && wait.why !== null && (
            <>
              <Prose text={wait.why} />.{' '}
            </>
          )}
          {isPaused ? (
            'Deliveries continue when you resume the webhook.'
          ) : (
            <NextAttempt at={wait?.at ?? null} />
          )}
        </>
      )}
    </Alert>
  );
}

function Attempts({ delivery, webhook }: { delivery: DeliveryDetail; webhook: WebhookDetail | undefined }) {
  const { attempts, attempt, lastAttempt } = delivery;
  const wait = waitOf(delivery, webhook, useNow());
  if (attempts.length === 0) {
    return (
      <Note>
        {attempt > 0 ? (
          <>
            The details are no longer kept. Last attempt: <Prose text={lastAttempt?.message ?? ''} />
          </>
        ) : wait === undefined ? (
          'The first attempt is in progress.'
        ) : (
          <>
            No attempts yet. {wait.why === null ? <NextAttempt at={wait.at} /> : 'See above for the reason.'}
          </>
        )}
      </Note>
    );
  }
  const newest = attempts.at(-1)?.number;
  return (
    <Accordion
      multiple
      // A new attempt changes the key, so that the new attempt is opened.
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

function Line(props: { attempt: Attempt }) {
  const { number, outcome, status, startedAt, durationMs, message } = props.attempt;
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

function Actions({ delivery: { id, state }, isLetter }: { delivery: DeliveryDetail; isLetter: boolean }) {
  const navigate = useNavigate();
  const label = state === 'waiting' ? 'Retry now' : 'Resend';
  const resend = useAction({
    run: () => flowhook.deliveries.replay(id),
    changes: ['deliveries', 'webhooks'],
    done: ({ message }) => message,
    onDone: ({ deliveryId }) => void navigate({ to: '/deliveries/$deliveryId', params: { deliveryId } }),
  });
  useShortcut('r', label, () => resend.act());
  return (
    <>
      {!isLetter && <SignedCurl deliveryId={id} />}
      <ActionButton isMain icon={state === 'waiting' ? 'refresh' : 'send'} action={resend} label={label} />
    </>
  );
}

function hostOf(url: string | undefined): string | undefined {
  if (url === undefined || isMail(url)) return url && addressOf(url);
  return URL.parse(url)?.host ?? url;
}

/** The signature expires after 5 min, so an open dialog gets a new one before that. */
const RENEW_MS = 4 * 60_000;

const curlQuery = (deliveryId: string) =>
  ask(['curl', deliveryId], (signal) => flowhook.deliveries.curl(deliveryId, { signal }), {
    staleTime: 0,
    gcTime: 0,
    refetchInterval: RENEW_MS,
  });

/** The delivery as a curl command with a current signature. */
function SignedCurl({ deliveryId }: { deliveryId: string }) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <ActionButton icon="copy" action={open} label="Signed curl" />
      <Modal opened={isOpen} onClose={close} title="Send this request from your shell" size="xl">
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
        The command has a new signature, so your receiver accepts it.{' '}
        {data !== undefined && (
          <>
            The signature expires <Time at={data.validUntil} />.
          </>
        )}
      </Text>
      <CommandLine command={data?.command ?? '…'} />
      {data !== undefined && data.hidden.length > 0 && (
        <Note>Replace *** with the values of {data.hidden.join(', ')}, which are never shown.</Note>
      )}
    </Stack>
  );
}
