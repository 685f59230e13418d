/** All events, newest first, with the states of their deliveries. */
import { Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { DeliveryState, FlowhookEvent } from '../../../../client/src/flowhook-client.ts';
import { column, timeColumn, workflowColumn } from '../../parts/columns.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, PERIODS, stringifySearch, useFilters, useSince } from '../../parts/filters.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateName } from '../../parts/state-badge.tsx';
import { Dim, Message } from '../../parts/values.tsx';
import { eventDeliveryCountsQuery, eventList, eventTypesQuery } from '../../queries/events.ts';
import { useList } from '../../queries/list.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { Counts } from '../runs/runs.tsx';

export function EventListPage() {
  return (
    <>
      <PageHeader title="Events" />
      <PageTabs of="Events" shown="Log" />
      <EventLog />
    </>
  );
}

function EventLog() {
  const { can } = useSession();
  const filters = useFilters('type', 'workflowId', 'within', 'jobId');
  const { type, workflowId, within, jobId } = filters.values;
  const since = useSince(within);
  const list = useList(eventList({ workflowId, jobId, type: choices<FlowhookEvent['type']>(type), since }));
  const { data: types = [] } = useQuery(eventTypesQuery());
  const { data: workflows = [] } = useQuery(workflowNamesQuery());
  const withDeliveries = can('webhooks');
  const columns = useMemo(() => columnsFor({ withDeliveries }), [withDeliveries]);
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          {
            kind: 'many',
            name: 'type',
            label: 'Type',
            options: types.map((kind) => ({ value: kind.type, label: kind.type })),
          },
          { kind: 'one', name: 'workflowId', label: 'Workflow', options: workflows },
          { kind: 'one', name: 'within', label: 'Time', options: PERIODS },
        ]}
      >
        <CopyAsCurl path={`/v1/events/history${stringifySearch({ workflowId, jobId, type, since })}`} />
      </FilterBar>
      <DataTable
        label="Events"
        noun="event"
        list={list}
        columns={columns}
        filters={filters}
        empty={
          <EmptyState
            title="No events yet"
            command={curl({
              method: 'POST',
              path: `/v1/workflows/${workflows[0]?.value ?? 'people'}/queue`,
            })}
          >
            Runs emit events when they are queued, start, change data and end. Start a run:
          </EmptyState>
        }
      />
    </>
  );
}

function columnsFor({ withDeliveries }: { withDeliveries: boolean }): (Column<FlowhookEvent> | false)[] {
  return [
    column('Type', '230px', ({ id, type }) => (
      <PageLink to="/events/$eventId" params={{ eventId: id }} c="inherit" fw={500}>
        {type}
      </PageLink>
    )),
    workflowColumn(),
    timeColumn('Time', ({ timestamp }) => timestamp),
    withDeliveries && column('Deliveries', 'fits', ({ id }) => <DeliveryCounts eventId={id} />),
    column('Summary', 'rest', (event) => <Summary event={event} />),
  ];
}

const STATES: DeliveryState[] = ['delivered', 'waiting', 'dead', 'canceled'];

/** The number of deliveries of an event in each state. */
function DeliveryCounts({ eventId }: { eventId: string }) {
  const { data: counts } = useQuery(eventDeliveryCountsQuery(eventId));
  if (counts === undefined) return null;
  const states = STATES.filter((state) => counts[state] !== undefined);
  if (states.length === 0) return <Dim>None</Dim>;
  return (
    <Group gap="sm" wrap="nowrap" className="numbers" h="1.5em">
      {states.map((state) => (
        <span key={state} title={`${stateName(state)}: ${counts[state]}`}>
          <StateBadge state={state} label={String(counts[state])} />
          <span className="visually-hidden"> {stateName(state)}</span>
        </span>
      ))}
    </Group>
  );
}

function Summary({ event }: { event: FlowhookEvent }) {
  switch (event.type) {
    case 'workflow_finished':
    case 'workflow_data_change':
    case 'workflow_recovered':
      return <Counts of={event.data} records={event.data.records} />;
    case 'workflow_schema_changed':
    case 'workflow_expectation_failed':
    case 'workflow_failed':
      return <Message text={event.data.error ?? ''} isBad />;
    case 'workflow_canceled':
      return <Message text={event.data.error ?? ''} isBad={false} />;
    case 'webhook_test':
      return <Message text={event.data.message} isBad={false} />;
    case 'workflow_stale':
      return <Message text={event.data.reason} isBad />;
    case 'webhook_paused':
      return <Message text={`${event.data.reason} (${event.data.url})`} isBad />;
    case 'webhook_failing':
      return <Message text={`${event.data.lastError ?? 'Failing'} (${event.data.url})`} isBad />;
    default:
      return null;
  }
}
