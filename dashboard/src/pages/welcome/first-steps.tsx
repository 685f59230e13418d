/** The first three steps, each with a button and a command, ticked once their result exists. */
import {
  Anchor,
  CloseButton,
  Group,
  Paper,
  SegmentedControl,
  Select,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useNavigate } from '@tanstack/react-router';
import type { Workflow } from 'flowhook-client';
import { type ReactNode, useEffect, useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { CommandLine, curl } from '../../parts/copy.tsx';
import { many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { ButtonLink, PageHeader, PageLink } from '../../parts/page.tsx';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { useList } from '../../queries/list.ts';
import { anyWebhook } from '../../queries/webhooks.ts';
import { someWorkflows } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { useRunNow } from '../workflows/use-run-now.ts';
import styles from './first-steps.module.css';
import { countDone, runnableOf, type StepsDone, stepsOf } from './steps.ts';

/** About the height of the steps, so that the page does not jump when they appear. */
const HEIGHT = 300;

/** Above the overview, until everything is done or one puts it away in this browser. */
export function FirstStepsNote() {
  const { team } = useSession();
  const [isAway, setAway] = useLocalStorage({
    key: `flowhook-first-steps-${team.id}`,
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  return isAway ? null : <Steps onAway={() => setAway(true)} />;
}

/** @param props.onAway puts it away for good; without it, it stays also when everything is done */
function Steps({ onAway }: { onAway?: () => void }) {
  const { can } = useSession();
  const workflows = useList(someWorkflows());
  const webhooks = useList({ ...anyWebhook(), enabled: can('webhooks') });
  const [chosen, setChosen] = useState<string | null>(null);
  const [wasDone, setWasDone] = useState<boolean>();
  const isKnown = !workflows.isLoading && (!webhooks.isLoading || !can('webhooks'));
  const steps = stepsOf(workflows.rows, webhooks.rows.length, chosen);
  const done = countDone(steps);
  useEffect(() => {
    if (isKnown) setWasDone((before) => before ?? done === 3);
  }, [isKnown, done]);
  // Who came with everything done is not bothered; who does the last step sees it ticked.
  const isNeedless = onAway !== undefined && wasDone === true;
  useEffect(() => {
    if (isNeedless) onAway?.();
  }, [isNeedless, onAway]);
  if (workflows.error !== null && workflows.rows.length === 0) return null;
  if (!isKnown) return <Skeleton h={HEIGHT} />;
  if (isNeedless) return null;
  return (
    <Paper component="section" aria-label="First steps">
      <Group justify="space-between" mb="md" wrap="nowrap">
        <Group gap="sm">
          <Title order={2} size="h4">
            First steps
          </Title>
          <Text size="sm" c="dimmed" className="numbers" role="status">
            {done === 3 ? 'All done' : `${done} of 3 done`}
          </Text>
        </Group>
        {onAway !== undefined && <CloseButton size="sm" aria-label="Hide the first steps" onClick={onAway} />}
      </Group>
      <SimpleGrid
        component="ol"
        cols={{ base: 1, md: 3 }}
        spacing="xl"
        m={0}
        p={0}
        style={{ listStyle: 'none' }}
      >
        <RunStep steps={steps} workflows={workflows.rows} onChoose={setChosen} />
        <DataStep steps={steps} />
        <WebhookStep steps={steps} />
      </SimpleGrid>
    </Paper>
  );
}

/** The first step: running a workflow, or making one. */
function RunStep({
  steps: { toRun, hasRun },
  workflows,
  onChoose,
}: {
  steps: StepsDone;
  workflows: readonly Workflow[];
  onChoose: (workflowId: string) => void;
}) {
  const { can } = useSession();
  const run = useRunNow(toRun?.id ?? '', toRun?.name ?? '');
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
            <ActionButton isMain={!hasRun} icon="play" action={run} aria-label={`Run ${toRun.name}`}>
              Run
            </ActionButton>
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

/** The second step: looking at the records of a run. */
function DataStep({ steps: { toRead, toRun, hasData } }: { steps: StepsDone }) {
  const workflowId = toRead?.id ?? toRun?.id ?? 'people';
  return (
    <Step
      number={2}
      title="Look at its data"
      isDone={hasData}
      action={
        toRead !== undefined && (
          <ButtonLink to="/workflows/$workflowId/data" params={{ workflowId: toRead.id }}>
            {many(toRead.records, 'record')} of {toRead.name}
          </ButtonLink>
        )
      }
      commands={{
        curl: curl({ path: `/v1/workflows/${encodeURIComponent(workflowId)}/data` }),
        cli: `npx flowhook data get ${workflowId}`,
      }}
    >
      {toRead === undefined
        ? 'Records can be read here as soon as a run has published some: as JSON, line by line, or as CSV.'
        : 'The newest version, whole: as JSON, line by line, or as CSV.'}
    </Step>
  );
}

const RECEIVER = 'https://example.com/hook';

/** The third step: subscribing a webhook. */
function WebhookStep({ steps: { toRun, hasWebhook } }: { steps: StepsDone }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const { act, isActing } = useAction({
    run: async () => {
      const inspector = await flowhook.inspectors.create();
      const input = { url: inspector.url, events: ['*'] };
      if (toRun === undefined) await flowhook.webhooks.subscribeToAll(input);
      else await flowhook.webhooks.subscribe({ workflowId: toRun.id, ...input });
      return inspector;
    },
    changes: ['inspectors', 'webhooks'],
    done: () => 'The inspector is subscribed: send a test event, or run the workflow, and see what arrives',
    onDone: ({ id }) => void navigate({ to: '/inspector/$inspectorId', params: { inspectorId: id } }),
  });
  const workflowId = toRun?.id ?? 'people';
  return (
    <Step
      number={3}
      title="Get notified of changes"
      isDone={hasWebhook}
      action={
        can('webhooks') && (
          <>
            <ActionButton isMain={!hasWebhook} icon="inspector" action={{ act: act, isActing: isActing }}>
              Try with an inspector
            </ActionButton>
            <ButtonLink to="/webhooks">Webhooks</ButtonLink>
          </>
        )
      }
      commands={{
        curl: curl({
          method: 'POST',
          path: '/v1/integrations/webhooks/subscribe',
          json: { workflowId, webhookUrl: RECEIVER, events: ['*'] },
        }),
        cli: `npx flowhook webhooks subscribe ${workflowId} ${RECEIVER}`,
      }}
    >
      {can('webhooks') ? (
        'A webhook is called when something happens: signed, and retried until it succeeds. An inspector is a URL that shows you what it receives.'
      ) : (
        <>
          A webhook is called when something happens. It takes a key with the scope <code>webhooks</code>.
        </>
      )}
    </Step>
  );
}

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  /** One or two sentences. */
  children: ReactNode;
  /** Buttons. */
  action?: ReactNode;
  commands?: { curl: string; cli: string } | undefined;
}

const WAYS = [
  { value: 'curl', label: 'curl' },
  { value: 'cli', label: 'CLI' },
];

function Step({ number, title, isDone, children, action, commands }: StepProps) {
  const [way, setWay] = useState<string>('curl');
  return (
    <Stack component="li" gap="sm" miw={0}>
      <Group gap="sm" wrap="nowrap">
        <span className={styles.number} data-done={isDone || undefined}>
          {isDone ? <Icon name="check" size={16} color={stateColor('finished')} /> : number}
        </span>
        <Title order={3} size="h5">
          {title}
          {isDone && <span className="visually-hidden"> (done)</span>}
        </Title>
      </Group>
      <Text size="sm" c="dimmed" component="div">
        {children}
      </Text>
      {action !== undefined && <Group gap="sm">{action}</Group>}
      {commands !== undefined && (
        <Stack gap={4} mt="auto">
          <SegmentedControl
            size="xs"
            data={WAYS}
            value={way}
            onChange={setWay}
            aria-label={`How to do it at a shell: ${title}`}
            className={styles.ways}
          />
          <CommandLine command={way === 'curl' ? commands.curl : commands.cli} />
        </Stack>
      )}
    </Stack>
  );
}

/** The welcome page: the first steps of a new team, also when they are done. */
export function WelcomePage() {
  const { can, team } = useSession();
  return (
    <>
      <PageHeader
        title="Welcome"
        description={
          <>
            Workflows of <b>{team.name}</b> run as jobs, jobs publish records, records are read over HTTP, and
            webhooks are called.
          </>
        }
      />
      <Stack gap="md">
        <Steps />
        <Text size="sm" c="dimmed">
          Commands take the key from the variable <code>FLOWHOOK_KEY</code>
          {can('admin') && (
            <>
              {' '}
              (
              <PageLink to="/keys" underline="always">
                make one
              </PageLink>
              )
            </>
          )}
          . Everything that the service can do is in the{' '}
          <Anchor inherit href="/docs" underline="always">
            API reference
          </Anchor>
          ; how to use it, in the{' '}
          <Anchor inherit href="/docs/guide/" underline="always">
            guide
          </Anchor>
          . <b>?</b> shows the keys of the dashboard, <b>Ctrl+K</b> finds everything by its name.
        </Text>
      </Stack>
    </>
  );
}
