/** One attempt: what was sent, what came back, and where the time went. */
import { Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { AxisBars } from '../../parts/charts.tsx';
import { HeaderTable, JsonView } from '../../parts/code.tsx';
import { IdText } from '../../parts/copy.tsx';
import { duration } from '../../parts/format.ts';
import { Facts } from '../../parts/page.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { type Attempt, hintFor, type Phase, phasesOf, usedOpenConnection } from './attempt.ts';

export function AttemptView({ attempt }: { attempt: Attempt }) {
  const { request, response, remoteAddress, status, startedAt, durationMs } = attempt;
  const hint = hintFor(attempt);
  return (
    <Stack gap="md">
      <Stack gap={2}>
        <Text
          size="sm"
          fw={500}
          hiddenFrom="sm"
          c={attempt.outcome === 'ok' ? undefined : 'var(--mantine-color-error)'}
          style={{ overflowWrap: 'anywhere' }}
        >
          <Prose text={attempt.message} />
        </Text>
        {hint !== undefined && (
          <Text size="sm" c="dimmed">
            <Prose text={hint} />
          </Text>
        )}
      </Stack>
      <Facts
        facts={[
          ['Sent', <Time key="sent" at={startedAt} />],
          ['Waited before', attempt.timing === null ? '–' : duration(attempt.timing.queuedMs)],
          ['Took', duration(durationMs)],
          ['Status', status ?? 'no answer'],
          ['Address', remoteAddress === null ? 'not reached' : <IdText key="ip" id={remoteAddress} />],
        ]}
      />
      {attempt.timing !== null && (
        <Part
          title="Timing"
          remark={usedOpenConnection(attempt) ? 'over a connection that was open' : undefined}
        >
          <PhaseBars attempt={attempt} />
        </Part>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Part title="Request headers">
          {request === null ? <Missing /> : <HeaderTable label="Request headers" headers={request.headers} />}
        </Part>
        <Part title="Response headers">
          {response === null ? (
            <Text size="sm" c="dimmed">
              There was no answer.
            </Text>
          ) : (
            <HeaderTable label="Response headers" headers={response.headers} />
          )}
        </Part>
      </SimpleGrid>
      {response !== null && (
        <Part title="Response body" remark="its first 2 KiB">
          {response.body === null || response.body === '' ? (
            <Text size="sm" c="dimmed">
              It is empty.
            </Text>
          ) : (
            <JsonView
              value={response.body}
              label={`Response body of attempt ${attempt.number}`}
              maxHeight="320px"
            />
          )}
        </Part>
      )}
    </Stack>
  );
}

function Part({
  title,
  remark,
  children,
}: {
  title: string;
  remark?: string | undefined;
  children: ReactNode;
}) {
  return (
    <Stack gap={4} miw={0}>
      <Group gap="xs" align="baseline">
        <Title order={3} size="h5">
          {title}
        </Title>
        {remark !== undefined && (
          <Text size="xs" c="dimmed">
            {remark}
          </Text>
        )}
      </Group>
      {children}
    </Stack>
  );
}

function Missing() {
  return (
    <Text size="sm" c="dimmed">
      They are no longer kept.
    </Text>
  );
}

const COLORS: Record<Phase['kind'], string> = {
  queue: stateColor('queued'),
  network: stateColor('running'),
  receiver: stateColor('finished'),
};

/** The phases of an attempt, drawn. */
function PhaseBars({ attempt }: { attempt: Attempt }) {
  const phases = phasesOf(attempt);
  const isFailure = (phase: Phase) => attempt.outcome !== 'ok' && phase.name === 'Then it failed';
  return (
    <AxisBars
      label="Where the time went"
      axis={{ fromMs: 0, toMs: Math.max(1, phases.at(-1)?.toMs ?? 0) }}
      rows={phases.map((phase) => ({
        ...phase,
        key: phase.name,
        color: isFailure(phase) ? stateColor('dead') : COLORS[phase.kind],
        said: <span className="numbers">{duration(phase.toMs - phase.fromMs)}</span>,
      }))}
    />
  );
}
