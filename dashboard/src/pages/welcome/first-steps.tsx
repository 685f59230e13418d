/** The first three steps of a new team, each with a button and a command, checked off once their result exists. */
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
import { type ReactNode, useEffect, useState } from 'react';
import type { Workflow } from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { curl } from '../../parts/curl.ts';
import { many, uncapitalized } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { ButtonLink, PageHeader, PageLink } from '../../parts/page.tsx';
import { StateBadge, stateColor } from '../../parts/state-badge.tsx';
import { Note } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { anyWebhook } from '../../queries/webhooks.ts';
import { someWorkflows } from '../../queries/workflows.ts';
import { KeyVariable, useSession } from '../../session.tsx';
import { useRunNow } from '../workflows/use-run-now.ts';
import styles from './first-steps.module.css';
import { countDone, runnableOf, type StepsDone, stepsOf } from './steps.ts';

/** About the height of the steps, so that the page does not jump when they appear. */
const HEIGHT = 300;

/** Shows the steps above the overview, until all steps are done or the user hides them in this browser. */
export function FirstStepsNote() {
  const { team } = useSession();
  const [isHidden, setHidden] = useLocalStorage({
    key: `flowhook-first-steps-${team.id}`,
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  return isHidden ? null : <Steps onHide={() => setHidden(true)} />;
}

/** @param props.onHide hides the steps permanently; without it they stay even when all are done */
function Steps({ onHide }: { onHide?: () => void }) {
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
  // Hidden if all steps were done before; a user who does the last step here sees it checked off.
  const isNeedless = onHide !== undefined && wasDone === true;
  useEffect(() => {
    if (isNeedless) onHide?.();
  }, [isNeedless, onHide]);
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
        {onHide !== undefined && <CloseButton size="sm" aria-label="Hide the first steps" onClick={onHide} />}
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

function RunStep(props: {
  steps: StepsDone;
  workflows: readonly Workflow[];
  onChoose: (workflowId: string) => void;
}) {
  const { workflows, onChoose } = props;
  const { toRun, hasRun } = props.steps;
  const { can } = useSession();
  const run = useRunNow(toRun?.id ?? '', toRun?.name ?? '');
  if (toRun === undefined) {
    return (
      <Step
        number={1}
        title="Create a workflow"
        isDone={hasRun}
        action={<ButtonLink to="/workflows">Go to workflows</ButtonLink>}
        commands={{
          curl: curl({
            method: 'PUT',
            path: '/v1/workflows/people',
            json: { source: { type: 'http', url: 'https://example.com/people.json' } },
          }),
          cli: 'npx flowhook workflows new https://example.com/people',
        }}
      >
        A workflow defines where records come from: a web page, an API, a program, or your own pushes.
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
              aria-label="Workflow"
              data={options}
              value={toRun.id}
              onChange={(id) => id !== null && onChoose(id)}
              allowDeselect={false}
              searchable={options.length > 8}
              maw={190}
            />
          )}
          {can('queue') && (
            <ActionButton
              isMain={!hasRun}
              icon="play"
              action={run}
              aria-label={`Run ${toRun.name}`}
              label="Run"
            />
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
      A run fetches all records and publishes them together, or none if it fails.
      {!can('queue') && (
        <>
          {' '}
          Your key lacks the scope <code>queue</code>.
        </>
      )}
    </Step>
  );
}

function DataStep({ steps: { toRead, toRun, hasData } }: { steps: StepsDone }) {
  const workflowId = toRead?.id ?? toRun?.id ?? 'people';
  return (
    <Step
      number={2}
      title="View its data"
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
        ? 'Records appear as soon as a run has published them. Read them as JSON, NDJSON or CSV.'
        : 'Read all records of the latest version as JSON, NDJSON or CSV.'}
    </Step>
  );
}

const RECEIVER = 'https://example.com/hook';

function WebhookStep({ steps: { toRun, hasWebhook } }: { steps: StepsDone }) {
  const { can } = useSession();
  const navigate = useNavigate();
  const { act, isActing } = useAction({
    run: async () => {
      const inspector = await flowhook.inspectors.create();
      const input = { url: inspector.url, events: ['*'] };
      if (toRun === undefined) await flowhook.webhooks.create(input);
      else await flowhook.webhooks.subscribe({ workflowId: toRun.id, ...input });
      return inspector;
    },
    changes: ['inspectors', 'webhooks'],
    done: () => 'Inspector subscribed. Send a test event or run the workflow to see requests arrive.',
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
            <ActionButton
              isMain={!hasWebhook}
              icon="inspector"
              action={{ act, isActing }}
              label="Try with an inspector"
            />
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
        'A webhook calls your URL when something happens. Requests are signed, and retried if they fail. No receiver yet? An inspector is a URL that shows what it receives.'
      ) : (
        <>
          A webhook calls your URL when something happens. This needs a key with the scope{' '}
          <code>webhooks</code>.
        </>
      )}
    </Step>
  );
}

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  children: ReactNode;
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
            aria-label={`Command to ${uncapitalized(title)}`}
            className={styles.ways}
          />
          <CommandLine command={way === 'curl' ? commands.curl : commands.cli} />
        </Stack>
      )}
    </Stack>
  );
}

/** The first steps of a new team, even when they are done. */
export function WelcomePage() {
  const { team } = useSession();
  return (
    <>
      <PageHeader
        title="Welcome"
        description={
          <>
            In team <b>{team.name}</b>, workflows fetch records, programs read them over HTTP, and webhooks
            report what changed.
          </>
        }
      />
      <Stack gap="md">
        <Steps />
        <Note>
          Commands read the key from <KeyVariable />. See also the{' '}
          <Anchor inherit href="/docs/guide/" underline="always">
            guide
          </Anchor>{' '}
          and the{' '}
          <Anchor inherit href="/docs" underline="always">
            API reference
          </Anchor>
          . Press <b>?</b> for keyboard shortcuts, and <b>Ctrl+K</b> for quick search.
        </Note>
      </Stack>
    </>
  );
}
