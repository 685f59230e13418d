/** The page of one run: facts, timeline, log and changes. */
import { Alert, Box, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { type Job, type LogLine, NotFound } from '../../../../client/src/flowhook-client.ts';
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
import { StateBadge, stateName } from '../../parts/state-badge.tsx';
import { Duration, Prose, Time } from '../../parts/values.tsx';
import { jobQuery } from '../../queries/jobs.ts';
import { changesQuery } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { FindingList, Findings, isOfFindings } from './findings.tsx';
import styles from './log.module.css';
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
      before.finishedAt === null &&
      now.finishedAt !== null &&
      `Run of ${now.workflowId}: ${stateName(now.state)}`,
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
            <PageLink to="/workflows/$workflowId" params={{ workflowId: job.workflowId }} underline="always">
              {job.workflowId}
            </PageLink>
          </>
        }
        up={<PageLink to="/runs">Runs</PageLink>}
        id={job.id}
        meta={
          <StateBadge
            state={job.state}
            label={job.cancelRequestedAt === null || job.finishedAt !== null ? undefined : 'Canceling'}
          />
        }
        actions={<Actions job={job} />}
      />
      <Stack gap="lg">
        <Failure job={job} />
        <RunFacts job={job} />
        {!isOfFindings(job) && <Findings job={job} />}
        <Section title="Timeline">
          <RunTimeline job={job} />
        </Section>
        <Section title="Log">
          <RunLog job={job} />
        </Section>
        {hasChanged && job.version !== null && (
          <Section title="Changes">
            <RunChanges job={job} version={job.version} />
          </Section>
        )}
        {job.state === 'finished' && !hasChanged && (
          <EmptyState title="No changes">
            The records are the same as in the current version, so no new version was published.
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
  // The first line summarizes the error; a stack trace or the output of the program may follow.
  const [summary = '', ...details] = error.trimEnd().split('\n');
  return (
    <Alert
      color={isCanceled ? 'gray' : state === 'retrying' ? 'orange' : 'red'}
      icon={<Icon name={isCanceled ? 'ban' : 'warning'} />}
      title={
        <span style={{ overflowWrap: 'anywhere' }}>
          {isOfFindings(job) ? 'Nothing was published' : <Prose text={summary} />}
        </span>
      }
    >
      {isOfFindings(job) && <FindingList job={job} />}
      {details.length > 0 && (
        <Box component="pre" mt={0} mb="xs" fz="xs" ff="monospace" className={styles.details}>
          {details.join('\n')}
        </Box>
      )}
      {reason !== null && !isCanceled && (
        <Text size="sm" mt={4}>
          <Prose text={HINTS[reason]} />
          {nextAttemptAt !== null && (
            <>
              {' '}
              The next attempt starts <Time at={nextAttemptAt} as="at" />.
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
  const { id, finishedAt, origin } = job;
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
  const canRerun = can('queue') && finishedAt !== null && origin !== 'push';
  useShortcut('r', 'Run again', () => canRerun && rerun.act());
  return (
    <>
      <CopyAsCurl path={`/v1/jobs/${id}`} />
      <ActionButton icon="download" action={bundle} label="Debug bundle" />
      {can('queue') && job.state === 'retrying' && <ActionButton action={runNow} label="Retry now" />}
      {can('queue') && finishedAt === null && (
        <ActionButton
          action={cancel}
          asks={{
            title: 'Cancel this run?',
            children: 'The run is stopped and publishes nothing.',
            verb: 'Cancel run',
            keep: 'Keep running',
          }}
          color="red"
          disabled={job.cancelRequestedAt !== null}
          label="Cancel"
        />
      )}
      {canRerun && <ActionButton isMain icon="play" action={rerun} label="Run again" />}
    </>
  );
}

function RunFacts({ job }: { job: Job }) {
  const { id, workflowId, queuedAt, startedAt, finishedAt, attempt, origin, version, records, progress } =
    job;
  const { nextAttemptAt, quarantined } = job;
  const facts: Fact[] = [
    ['Queued', <Time key="queued" at={queuedAt} />],
    ['Time in queue', <Duration key="waited" from={queuedAt} to={startedAt ?? finishedAt} />],
    ['Duration', <Duration key="took" from={startedAt} to={finishedAt} />],
    [
      finishedAt === null ? 'Started' : 'Ended',
      <Time key="ended" at={finishedAt ?? startedAt} none="Not yet" />,
    ],
    ['Attempt', nextAttemptAt === null ? count(attempt) : <Next key="next" job={job} />],
    ['Started by', ORIGINS[origin]],
  ];
  if (records !== null) facts.push(['Records', <Counts key="records" of={job} records={records} />]);
  else if (progress !== null) {
    const pages = progress.pages === null ? '' : `, ${many(progress.pages, 'page')}`;
    facts.push([
      finishedAt === null ? 'Progress' : 'Output',
      `${many(progress.records, 'record')}, ${bytes(progress.bytes)}${pages}`,
    ]);
  }
  if (version !== null) facts.push(['Version', count(version)]);
  if (quarantined !== null && quarantined > 0)
    facts.push([
      'Set aside',
      <PageLink
        key="aside"
        to="/workflows/$workflowId/quarantine"
        params={{ workflowId }}
        search={{ job: id }}
      >
        {many(quarantined, 'record')}
      </PageLink>,
    ]);
  return <Facts facts={facts} />;
}

function Next({ job: { attempt, nextAttemptAt } }: { job: Job }) {
  return (
    <>
      {attempt}, next <Time at={nextAttemptAt} as="at" />
    </>
  );
}

const SHOWN = 20;

function RunChanges({ job, version }: { job: Job; version: number }) {
  const navigate = useNavigate();
  const { data, error } = useQuery(
    changesQuery({
      workflowId: job.workflowId,
      since: String(version - 1),
      until: String(version),
      most: SHOWN,
    }),
  );
  const all = (job.records?.added ?? 0) + (job.records?.changed ?? 0) + (job.records?.removed ?? 0) - SHOWN;
  if (error !== null && data === undefined)
    return (
      <ErrorBox
        error={error}
        title={error instanceof NotFound ? 'These changes are no longer kept' : undefined}
      />
    );
  return (
    <Stack gap="xs">
      <ChangeList
        changes={data?.changes ?? []}
        onOpen={(record) =>
          void navigate({
            to: '/workflows/$workflowId/changes',
            params: { workflowId: job.workflowId },
            search: { version: String(version), record },
          })
        }
      />
      <Text size="xs">
        <PageLink
          to="/workflows/$workflowId/changes"
          params={{ workflowId: job.workflowId }}
          search={{ version: String(version) }}
        >
          {all > 0 ? `View all changes of version ${version}` : `View version ${version}`}
        </PageLink>
      </Text>
    </Stack>
  );
}

/** What to do about a failed run, by the reason of the failure. */
const HINTS: Record<NonNullable<Job['reason']>, string> = {
  error: 'The program failed. The last lines of the log should say why.',
  source:
    'The source did not respond as expected. Check the URL and the credentials in the definition, and test the source with `flowhook workflows test`.',
  lost: 'The server that executed the run stopped or lost its database. Nothing was published, so running it again is safe.',
  timeout:
    'The run exceeded its time limit. Raise `limits.timeout` in the definition, or fetch less data per run.',
  memory:
    'The run exceeded its memory limit. Raise `limits.memory` in the definition, or process the data in parts.',
  output: 'The output is not valid: every line must be one JSON object. The log shows the line.',
  guard:
    'The records do not meet what the workflow expects, so nothing was published. If the data is correct, change `expect` in the definition and run it again.',
  invalid_record:
    'Every record needs an `id`, and `name` and `email` must be strings. Fix the source, or set `key` or `onInvalid` in the definition.',
};

/** Lines of the log in a debug bundle. */
const LOG_LINES = 1_000;

/** JSON with the job, its workflow, its events, and the last log lines of its last attempt. */
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
