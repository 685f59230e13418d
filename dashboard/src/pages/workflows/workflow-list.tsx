/** All workflows: how each stands, when it runs next, and how its last runs went. */
import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { useList } from '../../queries/list.ts';
import { webhookBadgesQuery } from '../../queries/webhooks.ts';
import { workflowList } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { NewWorkflow } from './new-workflow.tsx';
import { workflowColumns } from './workflow-columns.tsx';

export function WorkflowListPage() {
  const filters = useFilters('q');
  const { can, team } = useSession();
  const list = useList(workflowList(filters.values.q));
  const { data: badges } = useQuery({ ...webhookBadgesQuery(), enabled: can('webhooks') });
  const navigate = useNavigate();
  const [isMaking, setIsMaking] = useState(false);
  const mayRun = can('queue');
  const columns = useMemo(() => workflowColumns({ badges, mayRun }), [badges, mayRun]);
  const make = (
    <Button leftSection={<Icon name="plus" size={14} />} onClick={() => setIsMaking(true)}>
      New workflow
    </Button>
  );
  return (
    <>
      <PageHeader title="Workflows" actions={make} />
      <FilterBar filters={filters} fields={[{ kind: 'search', name: 'q', label: 'Search names and ids' }]} />
      <DataTable
        label="Workflows"
        noun="workflow"
        list={list}
        columns={columns}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/workflows/$workflowId/data', params: { workflowId: id } })}
        empty={
          filters.isFiltered ? (
            <EmptyState title="No workflow matches" onClear={filters.clear} />
          ) : (
            <EmptyState
              title="No workflows yet"
              command={`npx flowhook workflows add ${team.slug}/people --url https://example.com/people.json`}
              action={make}
            >
              A workflow is a source of records that runs on request or on a schedule. It is a file in the
              workflows directory, or is created here.
            </EmptyState>
          )
        }
      />
      <NewWorkflow isOpen={isMaking} onClose={() => setIsMaking(false)} />
    </>
  );
}
