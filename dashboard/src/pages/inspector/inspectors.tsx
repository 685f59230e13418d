/** The list of inspectors, which receive requests for trying webhooks. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Inspector } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { curl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { count, duration } from '../../parts/format.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { Time, UrlText } from '../../parts/values.tsx';
import { listOf } from '../../queries/list.ts';
import { inspectorsQuery } from '../../queries/webhooks.ts';
import { NeedsScope, useSession } from '../../session.tsx';

const COLUMNS: Column<Inspector>[] = [
  {
    id: 'url',
    header: 'URL',
    cell: ({ id, url }) => (
      <PageLink
        to="/inspector/$inspectorId"
        params={{ inspectorId: id }}
        c="inherit"
        fw={500}
        display="block"
        miw={0}
      >
        <UrlText url={url} />
      </PageLink>
    ),
  },
  {
    id: 'received',
    header: 'Requests',
    width: 'fits',
    align: 'end',
    cell: ({ received }) => <span className="numbers">{count(received)}</span>,
  },
  {
    id: 'answer',
    header: 'Answers',
    width: 'fits',
    cell: ({ status, delayMs }) => `${status}${delayMs === 0 ? '' : ` after ${duration(delayMs)}`}`,
  },
  { id: 'created', header: 'Created', width: 'fits', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { id: 'ends', header: 'Expires', width: 'fits', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
];

export function InspectorListPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader
        title="Inspector"
        description="A URL that keeps the requests it receives for a day, shows whether one of your webhooks signed them, and answers as you choose: for trying webhooks without a receiver."
        actions={can('webhooks') && <NewInspector />}
      />
      {can('webhooks') ? <Inspectors /> : <NeedsScope scope="webhooks" what="inspectors" />}
    </>
  );
}

function Inspectors() {
  const { data, error, isPending, refetch } = useQuery(inspectorsQuery());
  return (
    <DataTable
      label="Inspectors"
      noun="inspector"
      list={{
        ...listOf(data ?? []),
        error,
        isLoading: isPending,
        retry: () => void refetch(),
      }}
      columns={COLUMNS}
      empty={
        <EmptyState
          title="No inspectors yet"
          command={curl({ method: 'POST', path: '/v1/inspectors', json: {} })}
          action={<NewInspector />}
        >
          Make one, subscribe its URL, and watch requests arrive: headers, body, and whether the signature is
          valid.
        </EmptyState>
      }
    />
  );
}

function NewInspector() {
  const navigate = useNavigate();
  const create = useAction({
    run: () => flowhook.inspectors.create(),
    changes: ['inspectors'],
    onDone: ({ id }) => void navigate({ to: '/inspector/$inspectorId', params: { inspectorId: id } }),
  });
  return (
    <ActionButton isMain icon="plus" action={create}>
      New inspector
    </ActionButton>
  );
}
