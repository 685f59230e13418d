/** The columns of a table of webhooks. */
import { Stack, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { WebhookDetail } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import type { Column } from '../../parts/data-table.tsx';
import { PageLink } from '../../parts/link.tsx';
import { useNow } from '../../parts/now.ts';
import { Prose } from '../../parts/prose.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { UrlText } from '../../parts/url-text.tsx';
import { DayLatency, DaySuccess } from './day-strip.tsx';
import { lastWords, shortEvent, standing } from './health.ts';
import { isAfter } from './waits.ts';

/** What an attempt of a failing webhook came to; as often as usage is counted, which is often enough. */
const lastWordsQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['usage', 'last words', webhookId],
    queryFn: async ({ signal }) => {
      const { items } = await flowhook.webhooks.deliveries(webhookId, { limit: 10, signal }).page();
      return lastWords(items);
    },
  });

/** @param by.withWorkflow not on the page of the workflow itself */
export function webhookColumns({ withWorkflow }: { withWorkflow: boolean }): Column<WebhookDetail>[] {
  const all: (Column<WebhookDetail> | false)[] = [
    {
      id: 'url',
      header: 'URL',
      cell: (webhook) => (
        <Stack gap={0} miw={0}>
          <PageLink to="/webhooks/$webhookId" params={{ webhookId: webhook.id }} c="inherit" fw={500}>
            <UrlText url={webhook.url} />
          </PageLink>
          <Trouble webhook={webhook} />
        </Stack>
      ),
    },
    { id: 'state', header: 'State', width: 'fits', cell: (webhook) => <Standing webhook={webhook} /> },
    withWorkflow && {
      id: 'workflow',
      header: 'Workflow',
      width: '120px',
      cell: ({ workflowId }) =>
        workflowId === null ? (
          <Text span inherit c="dimmed">
            all
          </Text>
        ) : (
          <PageLink to="/workflows/$workflowId" params={{ workflowId }} c="inherit" title={workflowId}>
            {workflowId}
          </PageLink>
        ),
    },
    { id: 'events', header: 'Events', width: '150px', cell: ({ events }) => <EventNames events={events} /> },
    {
      id: 'success',
      header: 'Success, 24 h',
      width: 'fits',
      cell: ({ id }) => <DaySuccess webhookId={id} />,
    },
    { id: 'p95', header: 'p95', width: 'fits', cell: ({ id }) => <DayLatency webhookId={id} /> },
    {
      id: 'last',
      header: 'Delivered',
      width: 'fits',
      cell: ({ lastSuccessAt }) => <Time at={lastSuccessAt} none="never" />,
    },
  ];
  return all.filter((column) => column !== false);
}

/** The state, and since when, where it is not as it should be. */
export function Standing({ webhook }: { webhook: WebhookDetail }) {
  const { state, since, why } = standing(webhook);
  const { reason, nextAttemptAt } = webhook.breaker;
  const isHeld = state === 'failing' && reason !== null;
  return (
    <Stack gap={0}>
      <StateBadge
        state={state}
        label={isHeld ? 'failing, held back' : state}
        title={isHeld ? reason : (why ?? undefined)}
      />
      {since !== null && (
        <Text span size="xs" c="dimmed">
          <Time at={since} as="since" />
        </Text>
      )}
      {isHeld && <NextTry at={nextAttemptAt} />}
    </Stack>
  );
}

function NextTry({ at }: { at: string | null }) {
  const isToCome = isAfter(at, useNow());
  return (
    <Text span size="xs" c="dimmed">
      {at === null ? 'nothing waits' : <>next try {isToCome ? <Time at={at} as="at" /> : 'now'}</>}
    </Text>
  );
}

/** Two of them, and how many more. */
function EventNames({ events }: { events: readonly string[] }) {
  if (events.includes('*')) return <span title="Every type of event">all</span>;
  const shown = events.slice(0, 2).map(shortEvent).join(', ');
  return (
    <span title={events.join('\n')}>
      {shown}
      {events.length > 2 && ` +${events.length - 2}`}
    </span>
  );
}

function Trouble({ webhook }: { webhook: WebhookDetail }) {
  const { state, why } = standing(webhook);
  const { data: message } = useQuery({ ...lastWordsQuery(webhook.id), enabled: state === 'failing' });
  if (state === 'active') return null;
  const sentence =
    state === 'failing' ? (message ?? webhook.breaker.reason ?? ' ') : (why ?? 'Paused by hand');
  return (
    <Text
      span
      size="xs"
      truncate
      c={state === 'failing' ? 'var(--mantine-color-error)' : 'dimmed'}
      title={sentence}
    >
      <Prose text={sentence} />
    </Text>
  );
}
