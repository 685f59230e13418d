/** The list of runs, of the team or of one workflow, its columns, and actions on selected runs. */
import { Group, Progress, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Job, JobOrigin, JobState } from '../../../../client/src/flowhook-client.ts';
import { flowhook, serviceUrl } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { column, timeColumn, workflowColumn } from '../../parts/columns.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, PERIODS, useFilters, useSince } from '../../parts/filters.ts';
import { count, many, tookMs } from '../../parts/format.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateName } from '../../parts/state-badge.tsx';
import { CountSigns, Dim, Duration, Message, Numbers, Time } from '../../parts/values.tsx';
import { jobCountsQuery, jobList } from '../../queries/jobs.ts';
import { useList } from '../../queries/list.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { Remarks } from './findings.tsx';
import { type Outcome as Outcomes, outcomeWords } from './outcome-words.ts';

export function RunListPage() {
  return (
    <>
      <PageHeader title="Runs" />
      <RunTable />
    </>
  );
}

const STATES: JobState[] = ['queued', 'running', 'retrying', 'finished', 'failed', 'canceled'];

/** @param props.of a workflow (default: all workflows) */
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
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const longestMs = Math.max(0, ...list.rows.map((job) => tookMs(job) ?? 0));
  const columns = useMemo(() => runColumns({ withWorkflow: of === undefined, longestMs }), [of, longestMs]);
  const ofStates = STATES.map((value) => ({
    value,
    label: stateName(value) + (counts === undefined ? '' : countIn(value, counts)),
  }));
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'many', name: 'state', label: 'State', options: ofStates },
          of === undefined && { kind: 'one', name: 'workflowId', label: 'Workflow', options: workflows },
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
        selection={{ ids, onChange: setIds }}
        filters={filters}
        empty={
          <EmptyState
            title="No runs yet"
            command={curl({
              method: 'POST',
              path: `/v1/workflows/${of ?? workflows[0]?.value ?? 'people'}/queue`,
            })}
          >
            Runs start on request, here or over the API at {serviceUrl}, or on a schedule.
          </EmptyState>
        }
      />
    </>
  );
}

/** ` (3)`; ` (1,000+)` if the service counted only the newest of many ended runs. */
function countIn(state: JobState, counts: Record<JobState, number> & { complete: boolean }): string {
  const isMore = !counts.complete && ['finished', 'failed', 'canceled'].includes(state);
  return ` (${count(counts[state])}${isMore ? '+' : ''})`;
}

/** @param by.withWorkflow false on the page of a workflow */
export function runColumns(props: { withWorkflow: boolean; longestMs: number }): (Column<Job> | false)[] {
  const { withWorkflow, longestMs } = props;
  return [
    column('State', 'fits', ({ id, state, attempt }) => (
      <PageLink to="/runs/$jobId" params={{ jobId: id }} c="inherit" underline="hover">
        <StateBadge state={state} title={attempt > 1 ? `Attempt ${attempt}` : undefined} />
      </PageLink>
    )),
    withWorkflow && workflowColumn<Job>(),
    timeColumn('Queued', ({ queuedAt }) => queuedAt),
    column('Duration', 'fits', (job) => <RunDuration job={job} longestMs={longestMs} />),
    column('Result', 'rest', (job) => <Result job={job} />),
    column('Started by', 'fits', ({ origin }) => <Dim>{ORIGINS[origin]}</Dim>),
  ];
}

export const ORIGINS: Record<Job['origin'], string> = {
  api: 'API',
  schedule: 'Schedule',
  cli: 'Command line',
  push: 'Push',
};

function RunDuration({ job, longestMs }: { job: Job; longestMs: number }) {
  if (job.startedAt === null) return '–';
  return (
    <Stack gap={2}>
      <Duration from={job.startedAt} to={job.finishedAt} />
      {job.finishedAt !== null && (
        <Progress
          value={(100 * (tookMs(job) ?? 0)) / Math.max(1, longestMs)}
          size={3}
          color="gray"
          aria-hidden="true"
        />
      )}
    </Stack>
  );
}

/** The error of a failed run, the records of a finished one, the progress of a running one. */
function Result({ job }: { job: Job }) {
  const { state, error, records, progress, nextAttemptAt } = job;
  if (error !== null && state !== 'finished') {
    return (
      <Stack gap={0} miw={0}>
        <Message text={error} isBad={state !== 'canceled'} />
        {nextAttemptAt !== null && (
          <Dim style={{ whiteSpace: 'normal' }}>
            Next attempt <Time at={nextAttemptAt} as="at" />
          </Dim>
        )}
      </Stack>
    );
  }
  if (records !== null) {
    return (
      <Group gap="0 8px">
        <Counts of={job} records={records} />
        <Remarks job={job} />
      </Group>
    );
  }
  if (state === 'running' && progress !== null) {
    return <Dim className="numbers">{progress.message ?? `${many(progress.records, 'record')} so far`}</Dim>;
  }
  return null;
}

/** `1,204 records  +3 ~1`, where the numbers of changes are a link to them. */
export function Counts(props: {
  of: Pick<Job, 'workflowId' | 'version'>;
  records: NonNullable<Job['records']>;
}) {
  const { records } = props;
  const { workflowId, version } = props.of;
  const { total, added, changed, removed } = records;
  return (
    <Numbers>
      <span>{many(total, 'record')}</span>
      {added + changed + removed === 0 ? (
        <Dim>unchanged</Dim>
      ) : (
        <PageLink
          to="/workflows/$workflowId/changes"
          params={{ workflowId }}
          search={{ version: String(version) }}
          title="View changes"
        >
          <CountSigns records={records} />
        </PageLink>
      )}
    </Numbers>
  );
}

/** The maximum number of simultaneous calls. */
const PARALLEL = 4;

/** @param props.onDone clears the selection */
function RunActions({ chosen, onDone }: { chosen: readonly Job[]; onDone: () => void }) {
  const { can } = useSession();
  const unfinished = chosen.filter(({ finishedAt }) => finishedAt === null);
  const repeatable = chosen.filter(({ origin }) => origin !== 'push');
  const workflows = [...new Map(repeatable.map((job) => [job.workflowId, job])).values()];
  const rerun = useAction({
    run: () => each(workflows, ({ id }) => flowhook.jobs.rerun(id)),
    done: (outcome) => outcomeWords('queued', outcome),
    changes: ['jobs'],
    onDone,
  });
  const cancel = useAction({
    run: () => each(unfinished, ({ id }) => flowhook.jobs.cancel(id)),
    done: (outcome) => outcomeWords('canceled', outcome),
    changes: ['jobs'],
    onDone,
  });
  if (!can('queue') || chosen.length === 0) return null;
  return (
    <Group gap="xs">
      {workflows.length > 0 && (
        <ActionButton action={rerun} label={`Run ${many(workflows.length, 'workflow')} again`} />
      )}
      {unfinished.length > 0 && (
        <ActionButton
          action={cancel}
          asks={{
            title: `Cancel ${many(unfinished.length, 'run')}?`,
            children: 'They are stopped and publish nothing.',
            verb: `Cancel ${many(unfinished.length, 'run')}`,
            keep: 'Keep running',
          }}
          label={`Cancel ${many(unfinished.length, 'run')}`}
        />
      )}
    </Group>
  );
}

async function each(jobs: readonly Job[], act: (job: Job) => Promise<unknown>): Promise<Outcomes> {
  const outcome: Outcomes = { done: 0, failed: { count: 0, why: undefined } };
  for (let start = 0; start < jobs.length; start += PARALLEL) {
    const results = await Promise.allSettled(jobs.slice(start, start + PARALLEL).map(act));
    for (const result of results) {
      if (result.status === 'fulfilled') {
        outcome.done += 1;
      } else {
        outcome.failed.count += 1;
        outcome.failed.why ??= (result.reason as Error).message;
      }
    }
  }
  return outcome;
}
