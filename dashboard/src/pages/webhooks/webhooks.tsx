/** The list of webhooks, of the team or of one workflow, with their state and health. */
import { Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { WebhookDetail } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { SmallBars } from '../../parts/charts.tsx';
import { column, timeColumn, workflowColumn } from '../../parts/columns.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { count, duration } from '../../parts/format.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateColor, stateOptions, tone } from '../../parts/state-badge.tsx';
import { Message, Time, UrlText, useNow } from '../../parts/values.tsx';
import { ask, useList } from '../../queries/list.ts';
import { dayUsageQuery } from '../../queries/team.ts';
import { webhookList } from '../../queries/webhooks.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { NeedsScope, useSession } from '../../session.tsx';
import { healthOf, isAfter, lastFailure, percent, shortEvent, standing } from './health.ts';
import { SubscribeButton } from './subscribe.tsx';
import { isUnverified } from './unverified.tsx';

export function WebhookListPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader title="Webhooks" actions={can('webhooks') && <SubscribeButton />} />
      <WebhookTable />
    </>
  );
}

const STATES = stateOptions(['active', 'failing', 'paused']);

interface WebhookTableProps {
  /** A workflow (default: all workflows). */
  of?: string;
  /** At the end of the line of filters. */
  actions?: ReactNode;
}

export function WebhookTable(props: WebhookTableProps) {
  return (
    <NeedsScope scope="webhooks" what="webhooks">
      <Table {...props} />
    </NeedsScope>
  );
}

function Table({ of, actions }: WebhookTableProps) {
  const filters = useFilters('state', 'workflowId');
  const workflowId = of ?? filters.values.workflowId;
  const state = choices<'active' | 'failing' | 'paused'>(filters.values.state);
  const list = useList(webhookList({ workflowId, state }));
  const { data: workflows = [] } = useQuery({ ...workflowNamesQuery(), enabled: of === undefined });
  const columns = useMemo(() => webhookColumns({ withWorkflow: of === undefined }), [of]);
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'many', name: 'state', label: 'State', options: STATES },
          of === undefined && { kind: 'one', name: 'workflowId', label: 'Workflow', options: workflows },
        ]}
      >
        {actions}
      </FilterBar>
      <DataTable
        label="Webhooks"
        noun="webhook"
        list={list}
        columns={columns}
        filters={filters}
        empty={
          <EmptyState
            title="No webhooks yet"
            command={curl({
              method: 'POST',
              path: '/v1/integrations/webhooks/subscribe',
              json: {
                workflowId: of ?? workflows[0]?.value ?? 'people',
                webhookUrl: 'https://example.com/hooks/flowhook',
                events: ['workflow_finished'],
              },
            })}
          >
            A webhook calls your URL when something happens: a run finishes or fails, or records change.
            Create one here or with this command:
          </EmptyState>
        }
      />
    </>
  );
}

/** The message of the latest failed attempt. The kind `usage` refetches it rarely. */
const lastFailureQuery = (webhookId: string) =>
  ask(['usage', 'last failure', webhookId], async (signal) => {
    const { items } = await flowhook.webhooks.deliveries(webhookId, { limit: 10, signal }).page();
    return lastFailure(items);
  });

/** @param by.withWorkflow false on the page of a workflow */
function webhookColumns({ withWorkflow }: { withWorkflow: boolean }): (Column<WebhookDetail> | false)[] {
  return [
    column('Webhook', 'rest', (webhook) => (
      <Stack gap={0} miw={0}>
        <PageLink to="/webhooks/$webhookId" params={{ webhookId: webhook.id }} c="inherit" fw={500}>
          {webhook.name ?? <UrlText url={webhook.url} />}
        </PageLink>
        {webhook.name !== null && (
          <Text span size="xs" c="dimmed" truncate>
            <UrlText url={webhook.url} />
          </Text>
        )}
        <Trouble webhook={webhook} />
      </Stack>
    )),
    column('State', 'fits', (webhook) => <Standing webhook={webhook} />),
    withWorkflow && { ...workflowColumn<WebhookDetail>('All'), width: '120px' },
    column('Events', '150px', ({ events }) => <EventNames events={events} />),
    column('Success (24 h)', 'fits', ({ id }) => <DaySuccess webhookId={id} />),
    column('Response (p95)', 'fits', ({ id }) => <DayLatency webhookId={id} />),
    timeColumn('Last delivered', ({ lastSuccessAt }) => lastSuccessAt, 'Never'),
  ];
}

/** The state; of a failing or paused webhook also since when. */
function Standing({ webhook }: { webhook: WebhookDetail }) {
  const { state, since, why } = standing(webhook);
  const { reason, nextAttemptAt } = webhook.breaker;
  const isBackingOff = state === 'failing' && reason !== null;
  return (
    <Stack gap={0}>
      <StateBadge
        state={state}
        label={isUnverified(webhook) ? 'Not verified' : isBackingOff ? 'Failing, backing off' : undefined}
        title={isBackingOff ? reason : (why ?? undefined)}
      />
      {since !== null && (
        <Text span size="xs" c="dimmed">
          <Time at={since} as="since" />
        </Text>
      )}
      {isBackingOff && <NextTry at={nextAttemptAt} />}
    </Stack>
  );
}

function NextTry({ at }: { at: string | null }) {
  const isFuture = isAfter(at, useNow());
  return (
    <Text span size="xs" c="dimmed">
      {at === null ? 'No delivery waiting' : <>Next attempt {isFuture ? <Time at={at} as="at" /> : 'now'}</>}
    </Text>
  );
}

function EventNames({ events }: { events: readonly string[] }) {
  if (events.includes('*')) return <span title="All event types">All</span>;
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
  const { data: message } = useQuery({ ...lastFailureQuery(webhook.id), enabled: state === 'failing' });
  if (state === 'active') return null;
  const sentence =
    state === 'failing' ? (message ?? webhook.breaker.reason ?? ' ') : (why ?? 'Paused manually');
  return <Message text={sentence} isBad={state === 'failing'} fz="xs" />;
}

/** The share of successful attempts, and a bar per hour with successes and failures. */
function DaySuccess({ webhookId }: { webhookId: string }) {
  const { data: usage } = useQuery(dayUsageQuery({ webhookId }));
  // Keeps the height of the row while loading.
  if (usage === undefined) return '\u00a0';
  const { delivered, failedAttempts, dead, success } = healthOf(usage);
  const words = `Last 24 hours: ${count(delivered)} delivered, ${count(failedAttempts)} failed attempts, ${count(dead)} given up`;
  const hours = usage.buckets.slice(-24).map(({ start, deliveries }) => ({
    start,
    good: deliveries?.delivered ?? 0,
    bad: deliveries?.failedAttempts ?? 0,
  }));
  const most = Math.max(1, ...hours.map(({ good, bad }) => good + bad));
  // One failure among thousands must stay visible.
  const share = (value: number) => (value === 0 ? 0 : Math.max(0.1, value / most));
  return (
    <Group gap="sm" wrap="nowrap" title={words}>
      <Text
        span
        inherit
        className="numbers"
        w={56}
        c={success !== null && success < 0.9 ? tone('bad') : undefined}
      >
        {success === null ? '–' : percent(success)}
      </Text>
      <SmallBars
        label={words}
        widthPx={3}
        bars={hours.map(({ start, good, bad }) => ({
          key: start,
          parts: [
            { share: Math.min(share(good), 1 - share(bad)), color: stateColor('delivered') },
            { share: share(bad), color: stateColor('dead') },
          ],
        }))}
      />
    </Group>
  );
}

function DayLatency({ webhookId }: { webhookId: string }) {
  const { data: usage } = useQuery(dayUsageQuery({ webhookId }));
  const p95Ms = usage === undefined ? null : healthOf(usage).p95Ms;
  return <span className="numbers">{p95Ms === null ? '–' : duration(p95Ms)}</span>;
}
