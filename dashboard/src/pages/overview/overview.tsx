/** The state of the team: runs in progress, problems, the last 24 hours, and the latest runs. */
import { Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type JobState, NotFound } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { DayChart } from '../../parts/charts.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { count, tookMs } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, ErrorBox, PageHeader, PageLink } from '../../parts/page.tsx';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { Message, Note, Time, UrlText } from '../../parts/values.tsx';
import { jobCountsQuery, latestJobs } from '../../queries/jobs.ts';
import { ask, useList } from '../../queries/list.ts';
import { dayUsageQuery } from '../../queries/team.ts';
import { useSession } from '../../session.tsx';
import { runColumns } from '../runs/runs.tsx';
import { FirstStepsNote } from '../welcome/first-steps.tsx';
import { suspects, type Trouble, troubles } from './attention.ts';
import { NoticesOffer } from './notices.tsx';
import styles from './overview.module.css';

export function OverviewPage() {
  const { team } = useSession();
  return (
    <>
      <PageHeader title="Overview" meta={<span>{team.name}</span>} />
      <Stack gap="md">
        <FirstStepsNote />
        <NoticesOffer />
        <Counters />
        <NeedsAttention />
        <DayCharts />
        <LatestRuns />
      </Stack>
    </>
  );
}

const UNFINISHED: JobState[] = ['running', 'queued', 'retrying'];

/** Numbers of runs by state, each linked to the filtered list. */
function Counters() {
  const { data: counts } = useQuery(jobCountsQuery());
  const { data: usage } = useQuery(dayUsageQuery());
  const failed = usage?.buckets.reduce((sum, { jobs }) => sum + (jobs?.failed ?? 0), 0);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      {UNFINISHED.map((state) => (
        <Counter key={state} state={state} value={counts?.[state]} search={{ state }} />
      ))}
      <Counter
        state="failed"
        label="Failed (24 h)"
        value={failed}
        search={{ state: 'failed', within: '24h' }}
      />
    </SimpleGrid>
  );
}

function Counter(props: {
  state: JobState;
  label?: string;
  value: number | undefined;
  search: Record<string, string>;
}) {
  const { state, label, value, search } = props;
  return (
    <Paper withBorder p={0}>
      <PageLink to="/runs" search={search} underline="never" c="inherit" className={styles.counterLink}>
        <Group justify="space-between" gap="xs">
          <StateBadge state={state} label={label} />
          <Text span fz="xl" fw={600} className="numbers">
            {value === undefined ? '–' : count(value)}
          </Text>
        </Group>
      </PageLink>
    </Paper>
  );
}

const SHOWN = 10;

/** The kind `counts` refetches at most once a second when jobs change. */
const attentionQuery = (withWebhooks: boolean) =>
  ask(
    ['counts', 'attention', withWebhooks],
    async (signal) => {
      const [failed, stale, webhooks] = await Promise.all([
        flowhook.jobs.list({ state: ['failed'], limit: 100, signal }).page(),
        flowhook.events.history({ type: ['workflow_stale'], limit: 100, signal }).page(),
        withWebhooks
          ? flowhook.webhooks.listDetails({ state: ['failing', 'paused'], limit: 50, signal }).page()
          : { items: [] },
      ]);
      const workflows = await Promise.all(
        [...new Set([...suspects(failed.items), ...suspects(stale.items)])].map((id) =>
          flowhook.workflows.get(id, { signal }).catch((error: Error) => {
            // The workflow was archived after the run.
            if (error instanceof NotFound) return undefined;
            throw error;
          }),
        ),
      );
      return troubles(
        workflows.filter((workflow) => workflow !== undefined),
        webhooks.items,
      );
    },
    { refetchInterval: 60_000 },
  );

function NeedsAttention() {
  const { can } = useSession();
  const { data, error, refetch } = useQuery(attentionQuery(can('webhooks')));
  return (
    <Paper withBorder p="md" component="section" aria-label="Needs attention">
      <Title order={2} size="h4" mb="sm">
        Needs attention
      </Title>
      {error !== null && data === undefined && <ErrorBox error={error} onRetry={() => void refetch()} />}
      {data?.length === 0 && <AllGood withWebhooks={can('webhooks')} />}
      <ul className={styles.troubles}>
        {data?.slice(0, SHOWN).map((trouble) => (
          <li key={trouble.id} className={styles.trouble}>
            <Problem trouble={trouble} />
          </li>
        ))}
      </ul>
      {data !== undefined && data.length > SHOWN && (
        <Text size="xs" c="dimmed" mt="xs">
          {data.length - SHOWN} more under <PageLink to="/workflows">Workflows</PageLink> and{' '}
          <PageLink to="/webhooks">Webhooks</PageLink>
        </Text>
      )}
    </Paper>
  );
}

function AllGood({ withWebhooks }: { withWebhooks: boolean }) {
  const { data: counts } = useQuery(jobCountsQuery());
  if (counts === undefined) return null;
  if (counts.finished + counts.failed + counts.canceled === 0) {
    return (
      <Note>
        Nothing has run yet. <PageLink to="/workflows">Run a workflow</PageLink>; failures will appear here.
      </Note>
    );
  }
  return (
    <Group gap="xs" c="dimmed">
      <Icon name="check" color={stateColor('finished')} />
      <Text size="sm">
        All good: the last run of every workflow succeeded, none is stale
        {withWebhooks && ', and no webhook is failing or paused'}.
      </Text>
    </Group>
  );
}

function Problem({ trouble }: { trouble: Trouble }) {
  return (
    <>
      <Group gap="sm" wrap="nowrap" justify="space-between">
        <Group gap="sm" wrap="nowrap" miw={0}>
          <StateBadge state={trouble.state} />
          <Text span size="sm" truncate>
            {trouble.state === 'failed' && (
              <PageLink to="/runs/$jobId" params={{ jobId: trouble.jobId }} fw={500}>
                {trouble.id}
              </PageLink>
            )}
            {trouble.state === 'stale' && (
              <PageLink to="/workflows/$workflowId" params={{ workflowId: trouble.id }} fw={500}>
                {trouble.id}
              </PageLink>
            )}
            {trouble.kind === 'webhook' && (
              <PageLink to="/webhooks/$webhookId" params={{ webhookId: trouble.id }} fw={500}>
                <UrlText url={trouble.url} />
              </PageLink>
            )}
          </Text>
        </Group>
        <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          <Time
            at={new Date(trouble.sinceMs).toISOString()}
            as={trouble.state === 'failed' ? undefined : 'since'}
          />
        </Text>
      </Group>
      <Message text={trouble.why} isBad={false} fz="xs" />
    </>
  );
}

function DayCharts() {
  const { data, error, refetch } = useQuery(dayUsageQuery());
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <DayChart of="Runs" usage={data} />
      <DayChart of="Deliveries" usage={data} />
    </SimpleGrid>
  );
}

function LatestRuns() {
  const list = useList(latestJobs());
  const longestMs = Math.max(0, ...list.rows.map((job) => tookMs(job) ?? 0));
  return (
    <Paper withBorder p="md" component="section" aria-label="Latest runs">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Latest runs
        </Title>
        <Text size="sm">
          <PageLink to="/runs">All runs</PageLink>
        </Text>
      </Group>
      <DataTable
        label="Latest runs"
        noun="run"
        list={list}
        columns={runColumns({ withWorkflow: true, longestMs })}
        empty={
          <EmptyState
            title="No runs yet"
            command={curl({ method: 'POST', path: '/v1/workflows/people/queue' })}
            action={<PageLink to="/workflows">Run a workflow</PageLink>}
          />
        }
      />
    </Paper>
  );
}
