/** The columns of a table of runs. */
import { Progress, Stack, Text } from '@mantine/core';
import type { Job } from 'flowhook-client';
import { CountSigns } from '../../parts/count-signs.tsx';
import type { Column } from '../../parts/data-table.tsx';
import { Duration } from '../../parts/duration.tsx';
import { lastLine } from '../../parts/last-line.ts';
import { PageLink } from '../../parts/link.tsx';
import { Numbers } from '../../parts/numbers.tsx';
import { Prose } from '../../parts/prose.tsx';
import { many } from '../../parts/quantity.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';

/** @param by.withWorkflow not on the page of the workflow itself */
export function runColumns({
  withWorkflow,
  longestMs,
}: {
  withWorkflow: boolean;
  longestMs: number;
}): Column<Job>[] {
  const all: (Column<Job> | false)[] = [
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
      cell: ({ origin }) => (
        <Text span inherit c="dimmed">
          {ORIGINS[origin]}
        </Text>
      ),
    },
  ];
  return all.filter((column) => column !== false);
}

export const ORIGINS: Record<Job['origin'], string> = {
  api: 'API',
  schedule: 'schedule',
  cli: 'command line',
  push: 'push',
};

/** How long a run has taken, or has been going on; nothing before it has begun. */
export function tookMs({ startedAt, finishedAt }: Job): number {
  return startedAt === null || finishedAt === null ? 0 : Date.parse(finishedAt) - Date.parse(startedAt);
}

function Took({ job, longestMs }: { job: Job; longestMs: number }) {
  if (job.startedAt === null) return <Duration ms={null} />;
  return (
    <Stack gap={2}>
      <Duration from={job.startedAt} to={job.finishedAt} />
      {job.finishedAt !== null && (
        <Progress
          value={(100 * tookMs(job)) / Math.max(1, longestMs)}
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
          <Text span inherit c="dimmed" style={{ whiteSpace: 'normal' }}>
            again <Time at={nextAttemptAt} />
          </Text>
        )}
      </Stack>
    );
  }
  if (records !== null) return <Counts records={records} />;
  if (state === 'running' && progress !== null) {
    return (
      <Text span inherit c="dimmed" className="numbers">
        {progress.message ?? `${many(progress.records, 'record')} so far`}
      </Text>
    );
  }
  return null;
}

/** `1,204 records  +3 ~1 −0`, in words for those who hear it. */
export function Counts({ records }: { records: NonNullable<Job['records']> }) {
  const { total, added, changed, removed } = records;
  return (
    <Numbers>
      <span>{many(total, 'record')}</span>
      {added + changed + removed === 0 ? (
        <Text span inherit c="dimmed">
          nothing changed
        </Text>
      ) : (
        <CountSigns records={records} />
      )}
    </Numbers>
  );
}
