/** The list of workflows, with their last, next and recent runs. */
import { ActionIcon, Group, Stack, Text, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { Workflow } from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { SmallBars } from '../../parts/charts.tsx';
import { column } from '../../parts/columns.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { absolute, count, duration, many, tookMs } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, PageHeader, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge, stateColor, stateName } from '../../parts/state-badge.tsx';
import { Dim, Message, Time } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { type WebhookBadge, webhookBadgesQuery } from '../../queries/webhooks.ts';
import { RECENT_JOBS, workflowList } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { Remarks } from '../runs/findings.tsx';
import { isDue } from './definition.ts';
import { NewWorkflow } from './new-workflow.tsx';
import { useRunNow } from './use-run-now.ts';

export function WorkflowListPage() {
  const filters = useFilters('q');
  const { can, team } = useSession();
  const list = useList(workflowList(filters.values.q));
  const { data: badges } = useQuery({ ...webhookBadgesQuery(), enabled: can('webhooks') });
  const [isMaking, setIsMaking] = useState(false);
  const mayRun = can('queue');
  const columns = useMemo(() => workflowColumns({ badges, mayRun }), [badges, mayRun]);
  const make = <ActionButton isMain icon="plus" action={() => setIsMaking(true)} label="New workflow" />;
  return (
    <>
      <PageHeader title="Workflows" actions={make} />
      <FilterBar filters={filters} fields={[{ kind: 'search', name: 'q', label: 'Search by name or id' }]} />
      <DataTable
        label="Workflows"
        noun="workflow"
        list={list}
        columns={columns}
        filters={filters}
        empty={
          <EmptyState
            title="No workflows yet"
            command={`npx flowhook workflows new https://example.com/people --out workflows/${team.slug}/people.yaml`}
            action={make}
          >
            A workflow fetches records on request or on a schedule. Create one here, or add a file to the
            workflows directory:
          </EmptyState>
        }
      />
      <NewWorkflow isOpen={isMaking} onClose={() => setIsMaking(false)} />
    </>
  );
}

/** @param by.badges undefined if the key cannot see webhooks */
function workflowColumns(props: {
  badges: ReadonlyMap<string, WebhookBadge> | undefined;
  mayRun: boolean;
}): (Column<Workflow> | false)[] {
  const { badges, mayRun } = props;
  return [
    column('Workflow', 'rest', (workflow) => <Name workflow={workflow} />),
    column('Last run', 'fits', (workflow) => <LastRun workflow={workflow} />),
    column('Next run', 'fits', (workflow) => <NextRun workflow={workflow} />),
    column('Records', { width: 'fits', align: 'end' }, ({ version, records }) =>
      version === 0 ? <Dim>None yet</Dim> : <span className="numbers">{count(records)}</span>,
    ),
    column('Changes', 'fits', ({ id, name, history }) =>
      history.versions === 0 ? null : (
        <PageLink to="/workflows/$workflowId/changes" params={{ workflowId: id }} className="numbers">
          {many(history.versions, 'version')}
          <span className="visually-hidden"> of {name}</span>
        </PageLink>
      ),
    ),
    column('Last 14 runs', 'fits', ({ recentJobs = [] }) =>
      recentJobs.length === 0 ? null : <LastRuns runs={recentJobs} />,
    ),
    badges !== undefined &&
      column('Webhooks', 'fits', ({ id }) => <Webhooks workflowId={id} badge={badges.get(id)} />),
    mayRun && column('Run', 'fits', (workflow) => <RunButton workflow={workflow} />),
  ];
}

function Name({ workflow }: { workflow: Workflow }) {
  const { id, name } = workflow;
  return (
    <Stack gap={0} miw={0}>
      <Group gap="xs" wrap="nowrap" miw={0}>
        <Text span inherit truncate title={name}>
          <PageLink to="/workflows/$workflowId/data" params={{ workflowId: id }} fw={500} c="inherit">
            {name}
          </PageLink>
        </Text>
        <Text span size="xs" style={{ flex: 'none' }}>
          <WorkflowStates workflow={workflow} />
        </Text>
      </Group>
      {name !== id && (
        <Text span size="xs" c="dimmed" ff="monospace" truncate title={id}>
          {id}
        </Text>
      )}
    </Stack>
  );
}

/** What keeps a workflow from delivering new records. Nothing if all is well. */
export function WorkflowStates({ workflow: { paused, pausedAt, staleSince } }: { workflow: Workflow }) {
  if (!paused && staleSince === null) return null;
  const since = (at: string | null) => (at === null ? undefined : `Since ${absolute(at, 'local')}`);
  return (
    <Group component="span" gap="sm">
      {paused && <StateBadge state="paused" title={since(pausedAt)} />}
      {staleSince !== null && <StateBadge state="stale" title={since(staleSince)} />}
    </Group>
  );
}

function LastRun({ workflow: { currentJob, lastJob } }: { workflow: Workflow }) {
  const job = currentJob ?? lastJob;
  if (job === null) {
    return <Dim>Never</Dim>;
  }
  const error = lastJob?.state === 'failed' ? lastJob.error : null;
  return (
    <Stack gap={0} miw={0}>
      <Group gap="xs" wrap="nowrap">
        <PageLink to="/runs/$jobId" params={{ jobId: job.id }} c="inherit">
          <StateBadge state={job.state} />
        </PageLink>
        <Dim>
          <Time at={job.finishedAt ?? job.startedAt ?? job.queuedAt} />
        </Dim>
      </Group>
      {lastJob !== null && <Remarks job={lastJob} />}
      {error !== null && (
        // The message must not widen the column.
        <Message text={error} isBad fz="xs" w={0} miw="100%" />
      )}
    </Stack>
  );
}

function NextRun({ workflow }: { workflow: Workflow }) {
  const { nextRunAt, schedule, paused, source } = workflow;
  if (schedule === null) {
    return <Dim>{source.type === 'push' ? 'When pushed' : 'On demand'}</Dim>;
  }
  if (paused) return '–';
  return isDue(nextRunAt, Date.now()) ? <Dim>Now</Dim> : <Time at={nextRunAt} />;
}

function Webhooks({ workflowId, badge }: { workflowId: string; badge: WebhookBadge | undefined }) {
  if (badge === undefined) return null;
  const { total, inTrouble } = badge;
  const label = many(total, 'webhook') + (inTrouble === 0 ? '' : `, ${count(inTrouble)} failing or paused`);
  return (
    <PageLink
      to="/workflows/$workflowId/webhooks"
      params={{ workflowId }}
      c="inherit"
      aria-label={label}
      title={label}
    >
      <Group component="span" display="inline-flex" gap={6} wrap="nowrap">
        <Icon
          name={inTrouble > 0 ? 'warning' : 'webhook'}
          size={14}
          color={inTrouble > 0 ? stateColor('failing') : undefined}
        />
        <span className="numbers">{count(total)}</span>
      </Group>
    </PageLink>
  );
}

function RunButton({ workflow: { id, name, paused, source } }: { workflow: Workflow }) {
  const run = useRunNow(id, name);
  if (source.type === 'push') return null;
  const label = paused ? `${name} is paused` : `Run ${name} now`;
  return (
    <Tooltip label={label}>
      <ActionIcon
        aria-label={label}
        onClick={() => run.act()}
        loading={run.isActing}
        disabled={paused}
        color="indigo"
      >
        <Icon name="play" size={14} />
      </ActionIcon>
    </Tooltip>
  );
}

/** The last runs, oldest first: the color is the state, the height the duration. */
function LastRuns({ runs }: { runs: NonNullable<Workflow['recentJobs']> }) {
  const shown = runs.slice(0, RECENT_JOBS).reverse();
  const longestMs = Math.max(1, ...shown.map((run) => tookMs(run) ?? 0));
  const states = Object.groupBy(shown, ({ state }) => state);
  return (
    <SmallBars
      label={`Last ${many(shown.length, 'run')}: ${Object.entries(states)
        .map(([state, some]) => `${some.length} ${state}`)
        .join(', ')}`}
      widthPx={6}
      places={RECENT_JOBS}
      bars={shown.map((run) => {
        const ms = tookMs(run);
        const took = ms === null ? '' : `, ${duration(ms)}`;
        return {
          key: run.id,
          title: `${stateName(run.state)}, ${absolute(run.startedAt ?? run.queuedAt, 'local')}${took}`,
          parts: [{ share: 0.2 + 0.8 * Math.sqrt((ms ?? 0) / longestMs), color: stateColor(run.state) }],
        };
      })}
    />
  );
}
