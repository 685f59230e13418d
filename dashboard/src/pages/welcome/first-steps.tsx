/** The first three steps, each with a button and a command, ticked once their result exists. */
import { CloseButton, Group, Paper, SimpleGrid, Skeleton, Text, Title } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { useList } from '../../queries/list.ts';
import { anyWebhook } from '../../queries/webhooks.ts';
import { someWorkflows } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';
import { DataStep } from './data-step.tsx';
import { RunStep } from './run-step.tsx';
import { countDone, stepsOf } from './steps.ts';
import { WebhookStep } from './webhook-step.tsx';

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
export function Steps({ onAway }: { onAway?: () => void }) {
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
