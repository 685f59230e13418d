/** The list of inspectors: temporary URLs for testing webhooks. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { Inspector } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { column, countColumn, timeColumn } from '../../parts/columns.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { duration } from '../../parts/format.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { UrlText } from '../../parts/values.tsx';
import { listOf } from '../../queries/list.ts';
import { inspectorsQuery } from '../../queries/webhooks.ts';
import { NeedsScope, useSession } from '../../session.tsx';

const COLUMNS: Column<Inspector>[] = [
  column('URL', 'rest', ({ id, url }) => (
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
  )),
  countColumn('Requests', ({ received }) => received),
  column(
    'Responds with',
    'fits',
    ({ status, delayMs }) => `${status}${delayMs === 0 ? '' : ` after ${duration(delayMs)}`}`,
  ),
  timeColumn('Created', ({ createdAt }) => createdAt),
  timeColumn('Expires', ({ expiresAt }) => expiresAt),
];

export function InspectorListPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader
        title="Inspector"
        description="An inspector is a temporary URL for testing webhooks without a receiver. It keeps requests for a day, verifies their signatures, and responds with the status that you choose."
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
          Create one, subscribe its URL, and see every request with its headers, body and signature check.
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
  return <ActionButton isMain icon="plus" action={create} label="New inspector" />;
}
