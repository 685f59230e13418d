/** One attempt: what was sent, what came back, and where the time went. */
import { Group, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Facts } from '../../parts/facts.tsx';
import { IdText } from '../../parts/id-text.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Prose } from '../../parts/prose.tsx';
import { duration } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { HeaderTable } from './header-table.tsx';
import { hintFor } from './hints.ts';
import { PhaseBars } from './phase-bars.tsx';
import { type Attempt, usedOpenConnection } from './phases.ts';

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
