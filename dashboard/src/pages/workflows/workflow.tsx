/** The page of one workflow: its state, actions and tabs. */
import { Alert, Box, Group, Skeleton, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Outlet, useLocation, useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { NotFound, type Workflow } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { count, lastLine } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useShortcut } from '../../parts/keyboard.ts';
import { ButtonLink, EmptyState, ErrorBox, Facts, PageHeader, PageLink } from '../../parts/page.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { workflowQuery } from '../../queries/workflows.ts';
import { NeedsScope, useSession } from '../../session.tsx';
import { Remarks } from '../runs/findings.tsx';
import { scheduleWords } from './definition.ts';
import { useRunNow } from './use-run-now.ts';
import { WorkflowStates } from './workflows.tsx';

const TABS = {
  data: 'Data',
  runs: 'Runs',
  changes: 'Changes',
  quality: 'Quality',
  quarantine: 'Quarantine',
  webhooks: 'Webhooks',
  feeds: 'Feeds',
  definition: 'Definition',
  api: 'API',
} as const;

export function WorkflowPage() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow, error, refetch } = useQuery(workflowQuery(workflowId));
  const navigate = useNavigate();
  // Null during a navigation to another page, when the path has already changed.
  const tab = useLocation({
    select: ({ pathname }) => Object.keys(TABS).find((name) => pathname.endsWith(`/${name}`)) ?? null,
  });
  const { can } = useSession();
  if (!can('read')) return <NeedsScope scope="read" what="workflows" />;
  if (error instanceof NotFound && workflow === undefined) return <Unknown workflowId={workflowId} />;
  if (error !== null && workflow === undefined) {
    return <ErrorBox error={error} onRetry={() => void refetch()} />;
  }
  return (
    <>
      <PageHeader
        // The key moves the focus to the heading of another workflow.
        key={workflowId}
        title={workflow?.name ?? workflowId}
        up={<PageLink to="/workflows">Workflows</PageLink>}
        id={workflowId}
        meta={workflow !== undefined && <State workflow={workflow} />}
        actions={workflow !== undefined && <Actions workflow={workflow} />}
      />
      <WorkflowFacts workflow={workflow} />
      {workflow !== undefined && <Trouble workflow={workflow} />}
      {workflow !== undefined && <Stale workflow={workflow} />}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(value) =>
          void navigate({
            to: `/workflows/$workflowId/${value as keyof typeof TABS}`,
            params: { workflowId },
          })
        }
      >
        <Tabs.List mb="md">
          {Object.entries(TABS).map(([value, label]) => (
            <Tabs.Tab key={value} value={value}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {tab !== null && (
          <Tabs.Panel value={tab}>
            <Outlet />
          </Tabs.Panel>
        )}
      </Tabs>
    </>
  );
}

function State({ workflow }: { workflow: Workflow }) {
  const { currentJob, lastJob } = workflow;
  const job = currentJob ?? lastJob;
  return (
    <Group gap="sm">
      <WorkflowStates workflow={workflow} />
      {job !== null && (
        <PageLink to="/runs/$jobId" params={{ jobId: job.id }} c="inherit">
          <StateBadge
            state={job.state}
            label={currentJob === null ? `Last run ${job.state}` : undefined}
            title="View run"
          />
        </PageLink>
      )}
      {currentJob === null && lastJob !== null && <Remarks job={lastJob} />}
    </Group>
  );
}

function Actions({ workflow }: { workflow: Workflow }) {
  const { id, name, paused, source, currentJob } = workflow;
  const { can } = useSession();
  const run = useRunNow(id, name);
  const pause = useAction({
    run: () => (paused ? flowhook.workflows.resume(id) : flowhook.workflows.pause(id)),
    changes: ['workflows'],
    done: (now) => (now.paused ? `${name} is paused and starts no runs` : `${name} is active again`),
  });
  const mayRun = can('queue') && source.type !== 'push' && !paused && currentJob === null;
  useShortcut('r', 'Run now', () => mayRun && run.act());
  return (
    <>
      {can('admin') && (
        <ActionButton icon={paused ? 'play' : 'pause'} action={pause} label={paused ? 'Resume' : 'Pause'} />
      )}
      {can('queue') && source.type !== 'push' && currentJob === null && (
        <ActionButton
          isMain
          icon="play"
          action={run}
          disabled={paused}
          title={paused ? 'The workflow is paused. Resume it first.' : undefined}
          label="Run now"
        />
      )}
      {currentJob !== null && (
        <ButtonLink
          to="/runs/$jobId"
          params={{ jobId: currentJob.id }}
          leftSection={<Icon name="eye" size={14} />}
        >
          View current run
        </ButtonLink>
      )}
    </>
  );
}

/** Why the last run failed. Shown on every tab, because the data is then older than expected. */
function Trouble({ workflow: { lastJob } }: { workflow: Workflow }) {
  if (lastJob?.state !== 'failed' || lastJob.error === null) return null;
  return (
    <Alert color="red" icon={<Icon name="warning" />} py="xs" mb="md" role="status">
      <Group gap="xs">
        <Text span inherit lineClamp={3} style={{ overflowWrap: 'anywhere' }}>
          The last run failed <Time at={lastJob.finishedAt} as="at" />:{' '}
          <Prose text={lastLine(lastJob.error)} />
        </Text>
        <PageLink to="/runs/$jobId" params={{ jobId: lastJob.id }} underline="always" c="inherit">
          View run
        </PageLink>
      </Group>
    </Alert>
  );
}

/** Nothing has come for too long. Shown on every tab, as a failed run is. */
function Stale({ workflow: { staleSince, freshUntil } }: { workflow: Workflow }) {
  // A paused workflow need not be fresh.
  if (staleSince === null || freshUntil === null) return null;
  return (
    <Alert color="orange" icon={<Icon name="clock" />} py="xs" mb="md" role="status">
      A run had to succeed by <Time at={freshUntil} as="itself" />, and none did. The records are older than
      the definition allows (<code>fresh</code>).
    </Alert>
  );
}

function Unknown({ workflowId }: { workflowId: string }) {
  return (
    <>
      <PageHeader title="Workflow not found" />
      <EmptyState
        title={`No workflow has the id ${workflowId}`}
        action={<ButtonLink to="/workflows">All workflows</ButtonLink>}
      >
        It may have been archived, or it belongs to another team. To restore an archived workflow with its
        records, put its file back into the workflows directory.
      </EmptyState>
    </>
  );
}

const NAMES = ['Records', 'Version', 'Source', 'Mode', 'Schedule', 'Next run', 'Fresh until'] as const;

/** The key facts of a workflow, with placeholders while they load. */
function WorkflowFacts({ workflow }: { workflow: Workflow | undefined }) {
  const facts = workflow && factsOf(workflow);
  return (
    <Box mb="md">
      <Facts
        facts={NAMES.map((name) => [
          name,
          facts === undefined ? <Skeleton key={name} h={16} my={2} w={80} /> : facts[name],
        ])}
      />
    </Box>
  );
}

function factsOf(workflow: Workflow): Record<(typeof NAMES)[number], ReactNode> {
  const { records, version, source, mode, nextRunAt, schedule, paused, freshUntil } = workflow;
  return {
    Records: count(records),
    Version: version === 0 ? 'None yet' : count(version),
    Source: source.type,
    Mode: mode,
    Schedule: scheduleWords(workflow),
    'Fresh until': <Time at={freshUntil} none={paused ? 'Paused' : 'No limit'} />,
    'Next run': paused ? 'Paused' : schedule === null ? '–' : <Time at={nextRunAt} />,
  };
}
