/** One attempt: timing, response and headers. */
import { Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { AxisBars } from '../../parts/charts.tsx';
import { HeaderTable, JsonView } from '../../parts/code.tsx';
import { IdText } from '../../parts/copy.tsx';
import { duration } from '../../parts/format.ts';
import { Facts } from '../../parts/page.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import { Note, Prose, Time } from '../../parts/values.tsx';
import { isMail as isMailAddress } from '../webhooks/destination.ts';
import {
  type Attempt,
  FAILURE,
  hintFor,
  type Phase,
  phasesOf,
  reusedConnection,
  timingWords,
} from './attempt.ts';

export function AttemptView({ attempt }: { attempt: Attempt }) {
  const { request, response, remoteAddress, status, startedAt } = attempt;
  const hint = hintFor(attempt);
  const isMail = request !== null && isMailAddress(request.url);
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
          <Note>
            <Prose text={hint} />
          </Note>
        )}
      </Stack>
      <Facts
        facts={[
          ['Sent', <Time key="sent" at={startedAt} />],
          ['Duration', timingWords(attempt)],
          ['Status', status ?? 'No response'],
          ['IP address', remoteAddress === null ? 'Not reached' : <IdText key="ip" id={remoteAddress} />],
        ]}
      />
      {response !== null && (
        <Part title={isMail ? 'Reply of the mail server' : 'Response body'} remark="first 2 KiB">
          {response.body === null || response.body === '' ? (
            <Note>Empty</Note>
          ) : (
            <JsonView
              value={response.body}
              label={`Response body of attempt ${attempt.number}`}
              maxHeight="320px"
            />
          )}
        </Part>
      )}
      {attempt.timing !== null && (
        <Part title="Timing" remark={reusedConnection(attempt) ? 'reused connection' : undefined}>
          <PhaseBars attempt={attempt} />
        </Part>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Part title={isMail ? 'Headers of the mail' : 'Request headers'}>
          {request === null ? (
            <Note>No longer kept</Note>
          ) : (
            <HeaderTable label="Request headers" headers={request.headers} />
          )}
        </Part>
        {!isMail && (
          <Part title="Response headers">
            {response === null ? (
              <Note>No response</Note>
            ) : (
              <HeaderTable label="Response headers" headers={response.headers} />
            )}
          </Part>
        )}
      </SimpleGrid>
    </Stack>
  );
}

function Part(props: { title: string; remark?: string | undefined; children: ReactNode }) {
  const { title, remark, children } = props;
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

const COLORS: Record<Phase['kind'], string> = {
  queue: stateColor('queued'),
  network: stateColor('running'),
  receiver: stateColor('finished'),
};

function PhaseBars({ attempt }: { attempt: Attempt }) {
  const phases = phasesOf(attempt);
  const isFailure = (phase: Phase) => attempt.outcome !== 'ok' && phase.name === FAILURE;
  return (
    <AxisBars
      label="Timing"
      axis={{ fromMs: 0, toMs: Math.max(1, phases.at(-1)?.toMs ?? 0) }}
      rows={phases.map((phase) => ({
        ...phase,
        key: phase.name,
        color: isFailure(phase) ? stateColor('dead') : COLORS[phase.kind],
        remark: <span className="numbers">{duration(phase.toMs - phase.fromMs)}</span>,
      }))}
    />
  );
}
