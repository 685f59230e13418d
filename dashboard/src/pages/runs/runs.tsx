/** Runs as they happen, of the team or of one workflow: the list, its columns, and what is done with chosen ones. */
import { Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Job, JobOrigin, JobState } from 'flowhook-client';
import { useMemo, useState } from 'react';
import { flowhook, serviceUrl } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { curl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, PERIODS, useFilters, useSince } from '../../parts/filters.ts';
import { count, lastLine, many, tookMs } from '../../parts/format.ts';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { CountSigns, Dim, Duration, Numbers, Prose, Time } from '../../parts/values.tsx';
import { jobCountsQuery, jobList } from '../../queries/jobs.ts';
import { useList } from '../../queries/list.ts';
import { workflowNamesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
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
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const longestMs = Math.max(0, ...list.rows.map((job) => tookMs(job) ?? 0));
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
        selection={{ ids, onChange: setIds }}
        filters={filters}
        empty={
          <EmptyState
            title="Nothing has run yet"
            command={curl({
              method: 'POST',
              path: `/v1/workflows/${of ?? workflows[0]?.value ?? 'people'}/queue`,
            })}
          >
            A run begins when somebody queues a job: here, over the API at {serviceUrl}, or by a schedule.
          </EmptyState>
        }
      />
    </>
  );
}

/** What has ended is counted among the newest jobs only where there are many. */
function isMore(state: JobState, isComplete: boolean): string {
  return !isComplete && ['finished', 'failed', 'canceled'].includes(state) ? '+' : '';
}

/** @param by.withWorkflow not on the page of the workflow itself */
export function runColumns({
  withWorkflow,
  longestMs,
}: {
  withWorkflow: boolean;
  longestMs: number;
}): (Column<Job> | false)[] {
  return [
    {
      id: 'state',
      header: 'State',
      width: 'fits',
      cell: ({ id, state, attempt }) => (
        <PageLink to="/runs/$jobId" params={{ jobId: id }} c="inherit" underline="hover">
          <StateBadge state={state} title={attempt > 1 ? `Attempt ${attempt}` : undefined} />
        </PageLink>
      ),
    },
    withWorkflow && {
      id: 'workflow',
      header: 'Workflow',
      width: '200px',
      cell: ({ workflowId }) => (
        <PageLink to="/workflows/$workflowId" params={{ workflowId }} c="inherit" fw={500}>
          {workflowId}
        </PageLink>
      ),
    },
    { id: 'queued', header: 'Queued', width: 'fits', cell: ({ queuedAt }) => <Time at={queuedAt} /> },
    {
      id: 'took',
      header: 'Took',
      width: 'fits',
      cell: (job) => <Took job={job} longestMs={longestMs} />,
    },
    { id: 'outcome', header: 'Outcome', cell: (job) => <Outcome job={job} /> },
    {
      id: 'origin',
      header: 'By',
      width: 'fits',
      cell: ({ origin }) => <Dim>{ORIGINS[origin]}</Dim>,
    },
  ];
}

export const ORIGINS: Record<Job['origin'], string> = {
  api: 'API',
  schedule: 'schedule',
  cli: 'command line',
  push: 'push',
};

function Took({ job, longestMs }: { job: Job; longestMs: number }) {
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

/** Failures first: the sentence, not a code behind two clicks. */
function Outcome({ job }: { job: Job }) {
  const { state, error, records, progress, nextAttemptAt } = job;
  if (error !== null && state !== 'finished') {
    return (
      <Stack gap={0} miw={0}>
        <Text
          span
          inherit
          truncate
          c={state === 'canceled' ? 'dimmed' : 'var(--mantine-color-error)'}
          title={error}
        >
          <Prose text={lastLine(error)} />
        </Text>
        {nextAttemptAt !== null && (
          <Dim style={{ whiteSpace: 'normal' }}>
            again <Time at={nextAttemptAt} />
          </Dim>
        )}
      </Stack>
    );
  }
  if (records !== null) return <Counts records={records} />;
  if (state === 'running' && progress !== null) {
    return <Dim className="numbers">{progress.message ?? `${many(progress.records, 'record')} so far`}</Dim>;
  }
  return null;
}

/** `1,204 records  +3 ~1 −0`, in words for those who hear it. */
export function Counts({ records }: { records: NonNullable<Job['records']> }) {
  const { total, added, changed, removed } = records;
  return (
    <Numbers>
      <span>{many(total, 'record')}</span>
      {added + changed + removed === 0 ? <Dim>nothing changed</Dim> : <CountSigns records={records} />}
    </Numbers>
  );
}

/** How many calls are made at the same time. */
const AT_ONCE = 4;

/** @param props.onDone when all have been tried: nothing is chosen any more */
function RunActions({ chosen, onDone }: { chosen: readonly Job[]; onDone: () => void }) {
  const { can } = useSession();
  const unfinished = chosen.filter(({ finishedAt }) => finishedAt === null);
  const workflows = [...new Map(chosen.map((job) => [job.workflowId, job])).values()];
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
      <ActionButton action={rerun}>Run {many(workflows.length, 'workflow')} again</ActionButton>
      {unfinished.length > 0 && (
        <ActionButton
          action={cancel}
          asks={{
            title: `Cancel ${many(unfinished.length, 'run')}?`,
            children: 'Runs under way are stopped, and publish nothing.',
            verb: `Cancel ${many(unfinished.length, 'run')}`,
          }}
        >
          Cancel {many(unfinished.length, 'run')}
        </ActionButton>
      )}
    </Group>
  );
}

async function each(jobs: readonly Job[], act: (job: Job) => Promise<unknown>): Promise<Outcomes> {
  const outcome: Outcomes = { done: 0, refused: { count: 0, why: undefined } };
  for (let start = 0; start < jobs.length; start += AT_ONCE) {
    const results = await Promise.allSettled(jobs.slice(start, start + AT_ONCE).map(act));
    for (const result of results) {
      if (result.status === 'fulfilled') {
        outcome.done += 1;
      } else {
        outcome.refused.count += 1;
        outcome.refused.why ??= (result.reason as Error).message;
      }
    }
  }
  return outcome;
}
