/** The columns of a table of workflows. */
import { ActionIcon, Group, Stack, Text, Tooltip } from '@mantine/core';
import type { Workflow } from 'flowhook-client';
import type { Column } from '../../parts/data-table.tsx';
import { Icon } from '../../parts/icon.tsx';
import { lastLine } from '../../parts/last-line.ts';
import { PageLink } from '../../parts/link.tsx';
import { Prose } from '../../parts/prose.tsx';
import { count, many } from '../../parts/quantity.ts';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { Strip } from '../../parts/strip.tsx';
import { Time } from '../../parts/time.tsx';
import type { WebhookBadge } from '../../queries/webhooks.ts';
import { isDue } from './schedule-words.ts';
import { useRunNow } from './use-run-now.ts';

/** @param by.badges of webhooks, by workflow; undefined: they may not be seen */
export function workflowColumns({
  badges,
  mayRun,
}: {
  badges: ReadonlyMap<string, WebhookBadge> | undefined;
  mayRun: boolean;
}): Column<Workflow>[] {
  const all: (Column<Workflow> | false)[] = [
    { id: 'name', header: 'Workflow', cell: (workflow) => <Name workflow={workflow} /> },
    { id: 'state', header: 'Last run', width: 'fits', cell: (workflow) => <LastRun workflow={workflow} /> },
    { id: 'next', header: 'Next run', width: 'fits', cell: (workflow) => <NextRun workflow={workflow} /> },
    {
      id: 'records',
      header: 'Records',
      width: 'fits',
      align: 'end',
      cell: ({ version, records }) =>
        version === 0 ? (
          <Text span inherit c="dimmed">
            none yet
          </Text>
        ) : (
          <span className="numbers">{count(records)}</span>
        ),
    },
    {
      id: 'runs',
      header: 'Last 14 runs',
      width: 'fits',
      cell: ({ recentJobs = [] }) => (recentJobs.length === 0 ? null : <Strip runs={recentJobs} />),
    },
    badges !== undefined && {
      id: 'webhooks',
      header: 'Webhooks',
      width: 'fits',
      cell: ({ id }) => <Webhooks workflowId={id} badge={badges.get(id)} />,
    },
    mayRun && {
      id: 'run',
      header: 'Run',
      width: 'fits',
      cell: (workflow) => <RunButton workflow={workflow} />,
    },
  ];
  return all.filter((column) => column !== false);
}

function Name({ workflow: { id, name, paused } }: { workflow: Workflow }) {
  return (
    <Stack gap={0} miw={0}>
      <Group gap="xs" wrap="nowrap" miw={0}>
        <Text span inherit truncate title={name}>
          <PageLink to="/workflows/$workflowId/data" params={{ workflowId: id }} fw={500} c="inherit">
            {name}
          </PageLink>
        </Text>
        {paused && (
          <Text span size="xs" style={{ flex: 'none' }}>
            <StateBadge state="paused" />
          </Text>
        )}
      </Group>
      {name !== id && (
        <Text span size="xs" c="dimmed" ff="monospace" truncate title={id}>
          {id}
        </Text>
      )}
    </Stack>
  );
}

function LastRun({ workflow: { currentJob, lastJob } }: { workflow: Workflow }) {
  const job = currentJob ?? lastJob;
  if (job === null) {
    return (
      <Text span inherit c="dimmed">
        never ran
      </Text>
    );
  }
  const error = lastJob?.state === 'failed' ? lastJob.error : null;
  return (
    <Stack gap={0} miw={0}>
      <Group gap="xs" wrap="nowrap">
        <PageLink to="/runs/$jobId" params={{ jobId: job.id }} c="inherit">
          <StateBadge state={job.state} />
        </PageLink>
        <Text span inherit c="dimmed">
          <Time at={job.finishedAt ?? job.startedAt ?? job.queuedAt} />
        </Text>
      </Group>
      {error !== null && (
        // As wide as the column that the time makes, and not the other way round.
        <Text span size="xs" c="var(--mantine-color-error)" truncate title={error} w={0} miw="100%">
          <Prose text={lastLine(error)} />
        </Text>
      )}
    </Stack>
  );
}

function NextRun({ workflow }: { workflow: Workflow }) {
  const { nextRunAt, schedule, paused, source } = workflow;
  if (schedule === null) {
    return (
      <Text span inherit c="dimmed">
        {source.type === 'push' ? 'when pushed' : 'on demand'}
      </Text>
    );
  }
  if (paused) return '–';
  return isDue(nextRunAt, Date.now()) ? (
    <Text span inherit c="dimmed">
      due now
    </Text>
  ) : (
    <Time at={nextRunAt} />
  );
}

function Webhooks({ workflowId, badge }: { workflowId: string; badge: WebhookBadge | undefined }) {
  if (badge === undefined) return null;
  const { total, inTrouble } = badge;
  const says = many(total, 'webhook') + (inTrouble === 0 ? '' : `, ${count(inTrouble)} in trouble`);
  return (
    <PageLink
      to="/workflows/$workflowId/webhooks"
      params={{ workflowId }}
      c="inherit"
      aria-label={says}
      title={says}
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
  const { run, isRunning } = useRunNow(id, name);
  // Nothing runs there: its records come by themselves.
  if (source.type === 'push') return null;
  const label = paused ? `${name} is paused` : `Run ${name} now`;
  return (
    <Tooltip label={label}>
      <ActionIcon
        aria-label={label}
        onClick={() => run()}
        loading={isRunning}
        disabled={paused}
        color="indigo"
      >
        <Icon name="play" size={14} />
      </ActionIcon>
    </Tooltip>
  );
}
