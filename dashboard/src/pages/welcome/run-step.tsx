/** The first step: running a workflow, or making one. */
import { Button, Select } from '@mantine/core';
import type { Workflow } from 'flowhook-client';
import { curl } from '../../parts/curl.ts';
import { Icon } from '../../parts/icon.tsx';
import { ButtonLink, PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { useSession } from '../../session.tsx';
import { useRunNow } from '../workflows/use-run-now.ts';
import { Step } from './step.tsx';
import { runnableOf, type Steps } from './steps.ts';

export function RunStep({
  steps: { toRun, hasRun },
  workflows,
  onChoose,
}: {
  steps: Steps;
  workflows: readonly Workflow[];
  onChoose: (workflowId: string) => void;
}) {
  const { can } = useSession();
  const { run, isRunning } = useRunNow(toRun?.id ?? '', toRun?.name ?? '');
  if (toRun === undefined) {
    return (
      <Step
        number={1}
        title="Make a workflow"
        isDone={hasRun}
        action={<ButtonLink to="/workflows">To the workflows</ButtonLink>}
        commands={{
          curl: curl({
            method: 'PUT',
            path: '/v1/workflows/people',
            json: { source: { type: 'http', url: 'https://example.com/people.json' } },
          }),
          cli: 'npx flowhook workflows new https://example.com/people',
        }}
      >
        It says where records come from: a page, an API, a program, or pushes.
      </Step>
    );
  }
  const job = workflows.find(({ id }) => id === toRun.id)?.lastJob ?? null;
  const options = runnableOf(workflows).map(({ id, name }) => ({ value: id, label: name }));
  return (
    <Step
      number={1}
      title="Run a workflow"
      isDone={hasRun}
      action={
        <>
          {options.length > 1 && (
            <Select
              aria-label="The workflow"
              data={options}
              value={toRun.id}
              onChange={(id) => id !== null && onChoose(id)}
              allowDeselect={false}
              searchable={options.length > 8}
              maw={190}
            />
          )}
          {can('queue') && (
            <Button
              variant={hasRun ? 'default' : 'filled'}
              leftSection={<Icon name="play" size={14} />}
              aria-label={`Run ${toRun.name}`}
              loading={isRunning}
              onClick={() => run()}
            >
              Run
            </Button>
          )}
          {job !== null && (
            <PageLink to="/runs/$jobId" params={{ jobId: job.id }} fz="sm">
              <StateBadge state={job.state} />
            </PageLink>
          )}
        </>
      }
      commands={{
        curl: curl({ method: 'POST', path: `/v1/workflows/${encodeURIComponent(toRun.id)}/queue` }),
        cli: `npx flowhook run ${toRun.id} --wait`,
      }}
    >
      A run fetches records and publishes them at once, or not at all.
      {!can('queue') && (
        <>
          {' '}
          This key lacks the scope <code>queue</code>.
        </>
      )}
    </Step>
  );
}
