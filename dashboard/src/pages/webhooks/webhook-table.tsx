/** Webhooks with their filters: of the whole team, or of one workflow. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { NeedsScope } from '../../parts/needs-scope.tsx';
import { useList } from '../../queries/list.ts';
import { type WebhookFilter, webhookList } from '../../queries/webhooks.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { webhookColumns } from './webhook-columns.tsx';

const STATES = ['active', 'failing', 'paused'].map((value) => ({ value, label: value }));

export interface WebhookTableProps {
  /** The workflow whose webhooks these are; all of the team unless told. */
  of?: string;
  /** At the end of the line of filters. */
  actions?: ReactNode;
}

export function WebhookTable(props: WebhookTableProps) {
  const { can } = useSession();
  return can('webhooks') ? <Table {...props} /> : <NeedsScope scope="webhooks" what="webhooks" />;
}

function Table({ of, actions }: WebhookTableProps) {
  const filters = useFilters('state', 'workflowId');
  const workflowId = of ?? filters.values.workflowId;
  const state = choices<NonNullable<WebhookFilter['state']>[number]>(filters.values.state);
  const list = useList(webhookList({ workflowId, state }));
  const { data: workflows = [] } = useQuery({ ...workflowNamesQuery(), enabled: of === undefined });
  const navigate = useNavigate();
  const columns = useMemo(() => webhookColumns({ withWorkflow: of === undefined }), [of]);
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'many', name: 'state', label: 'State', options: STATES },
          ...(of === undefined
            ? [{ kind: 'one' as const, name: 'workflowId' as const, label: 'Workflow', options: workflows }]
            : []),
        ]}
      >
        {actions}
      </FilterBar>
      <DataTable
        label="Webhooks"
        noun="webhook"
        list={list}
        columns={columns}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } })}
        empty={
          filters.isFiltered ? (
            <EmptyState title="No webhook matches these filters" onClear={filters.clear} />
          ) : (
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
              A webhook is a URL of yours that is called when something happens: a run finished or failed,
              records changed. Subscribe one here, or with a command.
            </EmptyState>
          )
        }
      />
    </>
  );
}
