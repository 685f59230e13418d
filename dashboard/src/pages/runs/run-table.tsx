/** Runs with their filters: of the whole team, or of one workflow. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { JobOrigin, JobState } from 'flowhook-client';
import { useMemo, useState } from 'react';
import { serviceUrl } from '../../client.ts';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { count } from '../../parts/quantity.ts';
import { jobCountsQuery, jobList } from '../../queries/jobs.ts';
import { useList } from '../../queries/list.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { PERIODS, useSince } from './periods.ts';
import { RunActions } from './run-actions.tsx';
import { ORIGINS, runColumns, tookMs } from './run-columns.tsx';

const STATES: JobState[] = ['queued', 'running', 'retrying', 'finished', 'failed', 'canceled'];

/** @param props.of the workflow whose runs these are; of all unless told */
export function RunTable({ of }: { of?: string }) {
  const filters = useFilters('state', 'workflowId', 'origin', 'within');
  const { state, origin, within } = filters.values;
  const workflowId = of ?? filters.values.workflowId;
  const since = useSince(within);
  const filter = {
    workflowId,
    state: choices<JobState>(state),
    origin: origin as JobOrigin | undefined,
    since,
  };
  const list = useList(jobList(filter));
  const { data: counts } = useQuery(jobCountsQuery(workflowId));
  const { data: workflows = [] } = useQuery({ ...workflowNamesQuery(), enabled: of === undefined });
  const navigate = useNavigate();
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const longestMs = Math.max(0, ...list.rows.map(tookMs));
  const columns = useMemo(() => runColumns({ withWorkflow: of === undefined, longestMs }), [of, longestMs]);
  const ofStates = STATES.map((value) => ({
    value,
    label:
      counts === undefined ? value : `${value} (${count(counts[value])}${isMore(value, counts.complete)})`,
  }));
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'many', name: 'state', label: 'State', options: ofStates },
          ...(of === undefined
            ? [{ kind: 'one' as const, name: 'workflowId' as const, label: 'Workflow', options: workflows }]
            : []),
          {
            kind: 'one',
            name: 'origin',
            label: 'Started by',
            options: Object.entries(ORIGINS).map(([value, label]) => ({ value, label })),
          },
          { kind: 'one', name: 'within', label: 'Time', options: PERIODS },
        ]}
      >
        <RunActions chosen={list.rows.filter(({ id }) => ids.has(id))} onDone={() => setIds(new Set())} />
      </FilterBar>
      <DataTable
        label="Runs"
        noun="run"
        list={list}
        columns={columns}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/runs/$jobId', params: { jobId: id } })}
        selection={{ ids, onChange: setIds }}
        empty={
          filters.isFiltered ? (
            <EmptyState title="No run matches these filters" onClear={filters.clear} />
          ) : (
            <EmptyState
              title="Nothing has run yet"
              command={curl({
                method: 'POST',
                path: `/v1/workflows/${of ?? workflows[0]?.value ?? 'people'}/queue`,
              })}
            >
              A run begins when somebody queues a job: here, over the API at {serviceUrl}, or by a schedule.
            </EmptyState>
          )
        }
      />
    </>
  );
}

/** What has ended is counted among the newest jobs only where there are many. */
function isMore(state: JobState, isComplete: boolean): string {
  return !isComplete && ['finished', 'failed', 'canceled'].includes(state) ? '+' : '';
}
