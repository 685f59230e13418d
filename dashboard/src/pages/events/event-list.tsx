/** What happened, newest first, and whom it was told. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { FlowhookEvent } from 'flowhook-client';
import { useMemo } from 'react';
import { CopyAsCurl } from '../../parts/copy-as-curl.tsx';
import { curl } from '../../parts/curl.ts';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, stringifySearch, useFilters } from '../../parts/filters.ts';
import { PageLink } from '../../parts/link.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { Time } from '../../parts/time.tsx';
import { eventList, eventTypesQuery } from '../../queries/events.ts';
import { useList } from '../../queries/list.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { PERIODS, useSince } from '../runs/periods.ts';
import { EventTabs } from './event-tabs.tsx';
import { Reach } from './reach.tsx';
import { Said } from './said.tsx';

export function EventListPage() {
  return (
    <>
      <PageHeader title="Events" />
      <EventTabs shown="log" />
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
  const navigate = useNavigate();
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
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/events/$eventId', params: { eventId: id } })}
        empty={
          filters.isFiltered ? (
            <EmptyState title="No event matches these filters" onClear={filters.clear} />
          ) : (
            <EmptyState
              title="Nothing has happened yet"
              command={curl({
                method: 'POST',
                path: `/v1/workflows/${workflows[0]?.value ?? 'people'}/queue`,
              })}
            >
              A run emits events when it is queued, starts, changes data and ends. Start one.
            </EmptyState>
          )
        }
      />
    </>
  );
}

function columnsFor({ withDeliveries }: { withDeliveries: boolean }): Column<FlowhookEvent>[] {
  const all: (Column<FlowhookEvent> | false)[] = [
    {
      id: 'type',
      header: 'Type',
      width: '200px',
      cell: ({ id, type }) => (
        <PageLink to="/events/$eventId" params={{ eventId: id }} c="inherit" fw={500}>
          {type}
        </PageLink>
      ),
    },
    {
      id: 'workflow',
      header: 'Workflow',
      width: '180px',
      cell: ({ workflowId }) =>
        workflowId === undefined ? (
          '–'
        ) : (
          <PageLink to="/workflows/$workflowId" params={{ workflowId }} c="inherit" title={workflowId}>
            {workflowId}
          </PageLink>
        ),
    },
    { id: 'time', header: 'When', width: 'fits', cell: ({ timestamp }) => <Time at={timestamp} /> },
    withDeliveries && {
      id: 'deliveries',
      header: 'Deliveries',
      width: 'fits',
      cell: ({ id }) => <Reach eventId={id} />,
    },
    { id: 'said', header: 'What it says', cell: (event) => <Said event={event} /> },
  ];
  return all.filter((column) => column !== false);
}
