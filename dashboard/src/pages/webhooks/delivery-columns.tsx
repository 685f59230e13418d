/** The columns of a table of deliveries. */
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Delivery } from 'flowhook-client';
import type { Column } from '../../parts/data-table.tsx';
import { PageLink } from '../../parts/link.tsx';
import { useNow } from '../../parts/now.ts';
import { count } from '../../parts/quantity.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { webhookQuery } from '../../queries/webhooks.ts';

/** @param by.withWebhook shows the webhook, for deliveries of one event; otherwise the event, for those of one webhook */
export function deliveryColumns({ withWebhook }: { withWebhook: boolean }): Column<Delivery>[] {
  const all: (Column<Delivery> | false)[] = [
    {
      id: 'state',
      header: 'State',
      width: '130px',
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
    { id: 'created', header: 'Created', width: '110px', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      id: 'attempts',
      header: 'Attempts',
      width: '90px',
      align: 'end',
      cell: ({ attempt }) => <span className="numbers">{count(attempt)}</span>,
    },
    { id: 'outcome', header: 'Outcome', cell: (delivery) => <Outcome delivery={delivery} /> },
  ];
  return all.filter((column) => column !== false);
}

function Outcome({ delivery: { state, lastAttempt, nextAttemptAt } }: { delivery: Delivery }) {
  return (
    <Group gap="sm" wrap="nowrap" miw={0}>
      {lastAttempt !== null && (
        <Text
          span
          inherit
          truncate
          c={lastAttempt.outcome === 'ok' ? 'dimmed' : 'var(--mantine-color-error)'}
          title={lastAttempt.message}
        >
          {lastAttempt.message}
        </Text>
      )}
      {state === 'waiting' && (
        <Text span inherit c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          <NextTry at={nextAttemptAt} isFirst={lastAttempt === null} />
        </Text>
      )}
    </Group>
  );
}

/** Its id, until it is known where it goes, and when it is gone. */
function UrlOf({ webhookId }: { webhookId: string }) {
  const { data: webhook } = useQuery({ ...webhookQuery(webhookId), retry: false });
  return <span title={webhook?.url}>{webhook?.url ?? webhookId}</span>;
}

/** When the next attempt is made. What is due and not made is held back: the webhook is paused, or fails as a whole. */
export function NextTry({ at, isFirst = false }: { at: string | null; isFirst?: boolean }) {
  const now = useNow();
  if (at === null) return null;
  if (Date.parse(at) <= now)
    return <span title="It is tried as soon as the webhook answers others">held back</span>;
  return (
    <>
      {isFirst ? 'first' : 'again'} <Time at={at} />
    </>
  );
}
