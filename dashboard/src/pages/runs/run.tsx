/** The page of one run: its state, timeline, log and changes. */
import { Alert, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { type Job, type LogLine, NotFound } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { useAnnouncedChange } from '../../parts/announce.ts';
import { ChangeList } from '../../parts/change-list.tsx';
import { CopyAsCurl, save } from '../../parts/copy.tsx';
import { bytes, count, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { EmptyState, ErrorBox, type Fact, Facts, PageHeader, PageLink, Section } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Duration, Prose, Time } from '../../parts/values.tsx';
import { jobQuery } from '../../queries/jobs.ts';
import { changesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { attemptLog, RunLog } from './log.tsx';
import { Counts, ORIGINS } from './runs.tsx';
import { RunTimeline } from './timeline.tsx';

export function RunPage() {
  const { jobId } = useParams({ from: '/runs/$jobId' });
  return (
    <Loaded query={jobQuery(jobId)} title="Run">
      {(job) => <Shown job={job} />}
    </Loaded>
  );
}

function Shown({ job }: { job: Job }) {
  useAnnouncedChange(
    job,
    (now, before) =>
      before.finishedAt === null && now.finishedAt !== null && `Run of ${now.workflowId}: ${now.state}`,
  );
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
        up={<PageLink to="/runs">Runs</PageLink>}
        id={job.id}
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
      <ActionButton icon="download" action={bundle}>
        Debug bundle
      </ActionButton>
      {can('queue') && job.state === 'retrying' && <ActionButton action={runNow}>Try now</ActionButton>}
      {can('queue') && finishedAt === null && (
        <ActionButton
          action={cancel}
          asks={{
            title: 'Cancel this run?',
            children: 'Its program is stopped, and publishes nothing.',
            verb: 'Cancel the run',
          }}
          color="red"
          disabled={job.cancelRequestedAt !== null}
        >
          Cancel
        </ActionButton>
      )}
      {canRerun && (
        <ActionButton isMain icon="play" action={rerun}>
          Run again
        </ActionButton>
      )}
    </>
  );
}

/** The key facts of a run. */
function RunFacts({ job }: { job: Job }) {
  const { queuedAt, startedAt, finishedAt, attempt, origin, version, records, progress, nextAttemptAt } = job;
  const facts: Fact[] = [
    ['Queued', <Time key="queued" at={queuedAt} />],
    ['Waited', <Duration key="waited" from={queuedAt} to={startedAt ?? finishedAt} />],
    ['Took', <Duration key="took" from={startedAt} to={finishedAt} />],
    [
      finishedAt === null ? 'Started' : 'Ended',
      <Time key="ended" at={finishedAt ?? startedAt} none="not yet" />,
    ],
    ['Attempt', nextAttemptAt === null ? count(attempt) : <Next key="next" job={job} />],
    ['Started by', ORIGINS[origin]],
  ];
  if (records !== null) facts.push(['Records', <Counts key="records" records={records} />]);
  else if (progress !== null) {
    const pages = progress.pages === null ? '' : `, ${many(progress.pages, 'page')}`;
    facts.push(['So far', `${many(progress.records, 'record')}, ${bytes(progress.bytes)}${pages}`]);
  }
  if (version !== null) facts.push(['Version', count(version)]);
  return <Facts facts={facts} />;
}

function Next({ job: { attempt, nextAttemptAt } }: { job: Job }) {
  return (
    <>
      {attempt}, again <Time at={nextAttemptAt} />
    </>
  );
}

const SHOWN = 20;

/** Only for a run that has published a version of its own. */
function RunChanges({ job, version }: { job: Job; version: number }) {
  const { data, error } = useQuery(changesQuery({ workflowId: job.workflowId, version, most: SHOWN }));
  const all = (job.records?.added ?? 0) + (job.records?.changed ?? 0) + (job.records?.removed ?? 0) - SHOWN;
  if (error !== null && data === undefined)
    return (
      <ErrorBox
        error={error}
        title={error instanceof NotFound ? 'What it changed is no longer kept' : undefined}
      />
    );
  return (
    <Stack gap="xs">
      <ChangeList changes={data?.changes ?? []} />
      <Text size="xs">
        <PageLink
          to="/workflows/$workflowId/changes"
          params={{ workflowId: job.workflowId }}
          search={{ version: String(version) }}
        >
          {all > 0 ? `All changes of version ${version}` : `Version ${version} among the others`}
        </PageLink>
      </Text>
    </Stack>
  );
}

/** What can be done about a run that failed, by the reason that the service tells. */
const HINTS: Record<NonNullable<Job['reason']>, string> = {
  error: 'The program failed: its last lines in the log say why.',
  source:
    'What it reads from did not answer as expected. Look at the address and the key in the definition, and try the source with `flowhook workflows test`.',
  lost: 'The server that ran it stopped or lost the database. Nothing was published; running it again is safe.',
  timeout: 'It took longer than allowed. Raise `limits.timeout` in its definition, or make the run smaller.',
  memory: 'It used more memory than allowed. Raise `limits.memory` in its definition, or read in pieces.',
  output:
    'What it wrote could not be read as records: every line must be one JSON object. The log shows the line.',
  guard:
    'It would have replaced or removed too much, so nothing was published. If it is right, change `guards` in its definition and run it again.',
  invalid_record:
    'A record is not valid: each needs an `id`, and `name` and `email` must be texts. Fix the source, or set `key` or `onInvalid` in the definition.',
};

/** At most this many of the newest lines. */
const LOG_LINES = 1_000;

/** JSON: the job, the end of its last log, its events, and its workflow. */
async function debugBundle(job: Job): Promise<string> {
  const [log, events, workflow] = await Promise.all([
    job.attempt === 0 ? [] : lastLines(job),
    flowhook.events.history({ jobId: job.id }).take(50),
    flowhook.workflows.get(job.workflowId).catch((error: Error) => ({ error: error.message })),
  ]);
  return JSON.stringify({ takenAt: new Date().toISOString(), job, workflow, events, log }, null, 2);
}

async function lastLines({ id, attempt }: Job): Promise<LogLine[]> {
  const kept: LogLine[] = [];
  for await (const line of attemptLog(id, { attempt })) {
    kept.push(line);
    if (kept.length >= 2 * LOG_LINES) kept.splice(0, LOG_LINES);
  }
  return kept.slice(-LOG_LINES);
}
