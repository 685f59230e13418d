/** The columns of a table of deliveries. */
import { Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Delivery } from 'flowhook-client';
import type { Column } from '../../parts/data-table.tsx';
import { PageLink } from '../../parts/link.tsx';
import { useNow } from '../../parts/now.ts';
import { Prose } from '../../parts/prose.tsx';
import { count } from '../../parts/quantity.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { UrlText } from '../../parts/url-text.tsx';
import { webhookQuery } from '../../queries/webhooks.ts';
import { isAfter, waitOf } from './waits.ts';

/** @param by.withWebhook shows the webhook, for deliveries of one event; otherwise the event, for those of one webhook */
export function deliveryColumns({ withWebhook }: { withWebhook: boolean }): Column<Delivery>[] {
  const all: (Column<Delivery> | false)[] = [
    {
      id: 'state',
      header: 'State',
      width: 'fits',
      cell: ({ id, state }) => (
        <PageLink to="/deliveries/$deliveryId" params={{ deliveryId: id }} c="inherit" underline="hover">
          <StateBadge state={state} label={state === 'dead' ? 'given up' : state} />
        </PageLink>
      ),
    },
    withWebhook && {
      id: 'webhook',
      header: 'Webhook',
      width: '320px',
      cell: ({ webhookId }) => (
        <PageLink to="/webhooks/$webhookId" params={{ webhookId }} c="inherit">
          <UrlOf webhookId={webhookId} />
        </PageLink>
      ),
    },
    !withWebhook && {
      id: 'event',
      header: 'Event',
      width: '180px',
      cell: ({ eventType, origin }) => (
        <>
          {eventType}
          {origin === 'replay' && (
            <Text span inherit c="dimmed">
              {' '}
              · replay
            </Text>
          )}
        </>
      ),
    },
    { id: 'created', header: 'Created', width: 'fits', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      id: 'attempts',
      header: 'Attempts',
      width: 'fits',
      align: 'end',
      cell: ({ attempt }) => <span className="numbers">{count(attempt)}</span>,
    },
    { id: 'outcome', header: 'Outcome', cell: (delivery) => <Outcome delivery={delivery} /> },
  ];
  return all.filter((column) => column !== false);
}

function Outcome({ delivery }: { delivery: Delivery }) {
  const { state, lastAttempt } = delivery;
  return (
    <Stack gap={0} miw={0}>
      {lastAttempt !== null && (
        <Text
          span
          inherit
          truncate
          c={lastAttempt.outcome === 'ok' ? 'dimmed' : 'var(--mantine-color-error)'}
          title={lastAttempt.message}
        >
          <Prose text={lastAttempt.message} />
        </Text>
      )}
      {state === 'waiting' && (
        <Text span inherit c="dimmed" style={{ whiteSpace: 'normal' }}>
          <NextTry delivery={delivery} />
        </Text>
      )}
    </Stack>
  );
}

/** Its id, until it is known where it goes, and when it is gone. */
function UrlOf({ webhookId }: { webhookId: string }) {
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  return webhook === undefined ? webhookId : <UrlText url={webhook.url} />;
}

/** When the next attempt is made, and what holds it back. */
function NextTry({ delivery }: { delivery: Delivery }) {
  const { data: webhook } = useQuery({ ...webhookQuery(delivery.webhookId), retry: false });
  const now = useNow();
  const wait = waitOf(delivery, webhook, now);
  if (wait === undefined) return 'is being sent';
  const { why, at } = wait;
  if (webhook?.state === 'paused') return 'until the webhook is resumed';
  if (why !== null) {
    return (
      <span title={why}>
        held back
        {isAfter(at, now) && (
          <>
            , next attempt <Time at={at} as="at" />
          </>
        )}
      </span>
    );
  }
  return (
    <>
      {delivery.lastAttempt === null ? 'first' : 'again'} <Time at={at} />
    </>
  );
}
