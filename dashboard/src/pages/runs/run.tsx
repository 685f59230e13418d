/** The page of one run: its state, timeline, log and changes. */
import { Alert, Button, Loader, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import type { Job } from 'flowhook-client';
import { useEffect, useRef } from 'react';
import { flowhook } from '../../client.ts';
import { confirm, useAction } from '../../parts/action.tsx';
import { announce } from '../../parts/announce.ts';
import { CopyAsCurl } from '../../parts/copy-as-curl.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { Icon } from '../../parts/icon.tsx';
import { IdText } from '../../parts/id-text.tsx';
import { PageLink } from '../../parts/link.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { Prose } from '../../parts/prose.tsx';
import { save } from '../../parts/save.ts';
import { Section } from '../../parts/section.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { jobQuery } from '../../queries/jobs.ts';
import { useSession } from '../../session.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import { debugBundle } from './debug-bundle.ts';
import { HINTS } from './hints.ts';
import { RunChanges } from './run-changes.tsx';
import { RunFacts } from './run-facts.tsx';
import { RunLog } from './run-log.tsx';
import { RunTimeline } from './run-timeline.tsx';

export function RunPage() {
  const { jobId } = useParams({ from: '/runs/$jobId' });
  const { data: job, error, refetch } = useQuery(jobQuery(jobId));
  useToldEnd(job);
  if (error !== null && job === undefined) {
    return (
      <>
        <PageHeader title="Run" />
        <ErrorBox error={error} onRetry={() => void refetch()} />
      </>
    );
  }
  if (job === undefined) return <Loader aria-label="Loading" size="sm" m="xl" />;
  const { records } = job;
  const hasChanged = records !== null && records.added + records.changed + records.removed > 0;
  return (
    <>
      <PageHeader
        title={`Run of ${job.workflowId}`}
        heading={
          <>
            Run of{' '}
            <PageLink to="/workflows/$workflowId" params={{ workflowId: job.workflowId }} inherit>
              {job.workflowId}
            </PageLink>
          </>
        }
        parents={[
          <PageLink key="runs" to="/runs">
            Runs
          </PageLink>,
          <IdText key="id" id={job.id} />,
        ]}
        meta={
          <StateBadge
            state={job.state}
            label={job.cancelRequestedAt === null || job.finishedAt !== null ? job.state : 'being canceled'}
          />
        }
        actions={<Actions job={job} />}
      />
      <Stack gap="lg">
        <Failure job={job} />
        <RunFacts job={job} />
        <Section title="Timeline">
          <RunTimeline job={job} />
        </Section>
        <Section title="Log">
          <RunLog job={job} />
        </Section>
        {hasChanged && job.version !== null && (
          <Section title="What it changed">
            <RunChanges job={job} version={job.version} />
          </Section>
        )}
        {job.state === 'finished' && !hasChanged && (
          <EmptyState title="It changed nothing">
            It read the same records as the current version holds, so it published no new one.
          </EmptyState>
        )}
      </Stack>
    </>
  );
}

function Failure({ job }: { job: Job }) {
  const { error, reason, state, nextAttemptAt } = job;
  if (error === null || state === 'finished') return null;
  const isCanceled = state === 'canceled';
  return (
    <Alert
      color={isCanceled ? 'gray' : state === 'retrying' ? 'orange' : 'red'}
      icon={<Icon name={isCanceled ? 'ban' : 'warning'} />}
      title={
        <span style={{ overflowWrap: 'anywhere', whiteSpace: 'pre-wrap' }}>
          <Prose text={error} />
        </span>
      }
    >
      {reason !== null && !isCanceled && (
        <Text size="sm">
          <Prose text={HINTS[reason]} />
          {nextAttemptAt !== null && (
            <>
              {' '}
              It is tried again <Time at={nextAttemptAt} as="at" />.
            </>
          )}
        </Text>
      )}
    </Alert>
  );
}

function Actions({ job }: { job: Job }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const { id, finishedAt } = job;
  const rerun = useAction({
    run: () => flowhook.jobs.rerun(id),
    changes: ['jobs'],
    done: () => 'A new run is queued',
    onDone: ({ job: made }) => void navigate({ to: '/runs/$jobId', params: { jobId: made.id } }),
  });
  const cancel = useAction({
    run: () => flowhook.jobs.cancel(id),
    changes: ['jobs'],
    done: ({ message }) => message,
  });
  const runNow = useAction({
    run: () => flowhook.jobs.runNow(id),
    changes: ['jobs'],
    done: ({ message }) => message,
  });
  const bundle = useAction({
    run: () => debugBundle(job),
    onDone: (text) => save(`${id}.json`, text, 'application/json'),
  });
  const canRerun = can('queue') && finishedAt !== null;
  useShortcut('r', 'Run again', () => canRerun && rerun.act());
  return (
    <>
      <CopyAsCurl path={`/v1/jobs/${id}`} />
      <Button
        variant="default"
        leftSection={<Icon name="download" size={14} />}
        onClick={() => bundle.act()}
        loading={bundle.isActing}
      >
        Debug bundle
      </Button>
      {can('queue') && job.state === 'retrying' && (
        <Button variant="default" onClick={() => runNow.act()} loading={runNow.isActing}>
          Try now
        </Button>
      )}
      {can('queue') && finishedAt === null && (
        <Button
          variant="default"
          color="red"
          loading={cancel.isActing}
          disabled={job.cancelRequestedAt !== null}
          onClick={() =>
            confirm({
              title: 'Cancel this run?',
              children: 'Its program is stopped, and publishes nothing.',
              verb: 'Cancel the run',
              onConfirm: () => cancel.act(),
            })
          }
        >
          Cancel
        </Button>
      )}
      {canRerun && (
        <Button
          leftSection={<Icon name="play" size={14} />}
          onClick={() => rerun.act()}
          loading={rerun.isActing}
        >
          Run again
        </Button>
      )}
    </>
  );
}

/** Announces the end of the run to screen readers. */
function useToldEnd(job: Job | undefined): void {
  const before = useRef<Pick<Job, 'id' | 'finishedAt'>>(undefined);
  useEffect(() => {
    if (job === undefined) return;
    const wasGoing = before.current?.id === job.id && before.current.finishedAt === null;
    if (wasGoing && job.finishedAt !== null) announce(`Run of ${job.workflowId}: ${job.state}`);
    before.current = job;
  }, [job]);
}
