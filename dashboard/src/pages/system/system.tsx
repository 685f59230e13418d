/** The state of the instance, for operators. */
import { Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { System } from 'flowhook-client';
import type { ReactNode } from 'react';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { IdText } from '../../parts/id-text.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { bytes, count, duration } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { systemQuery } from '../../queries/system.ts';
import { useSession } from '../../session.tsx';
import { Checks } from './checks.tsx';
import { Settings } from './settings.tsx';
import { Upkeep } from './upkeep.tsx';

export function SystemPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader title="System" />
      {can('operator') ? (
        <Standing />
      ) : (
        <EmptyState
          title="Only for operators of the instance"
          command="flowhook keys create --scopes operator"
        >
          It takes a key with the scope <code>operator</code>, which the first key of an instance has.
        </EmptyState>
      )}
    </>
  );
}

function Standing() {
  const { data: system, error, refetch } = useQuery(systemQuery());
  if (system === undefined) {
    if (error !== null) return <ErrorBox error={error} onRetry={() => void refetch()} />;
    return <Waiting />;
  }
  return (
    <Stack gap="lg">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md">
        {cardsOf(system).map(({ title, facts }) => (
          <Paper key={title} withBorder p="md" component="section" aria-label={title}>
            <Title order={2} size="h5" mb="xs">
              {title}
            </Title>
            <Facts facts={facts} />
          </Paper>
        ))}
      </SimpleGrid>
      <Checks />
      <Upkeep kind={system.database.kind} />
      <Settings settings={system.settings} />
    </Stack>
  );
}

/** As large as the cards: what comes does not push anything away. */
function Waiting() {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" aria-busy="true">
      <Skeleton h={246} />
      <Skeleton h={246} />
      <Skeleton h={246} />
    </SimpleGrid>
  );
}

type Fact = [name: string, value: ReactNode];

function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <Stack component="dl" gap={4} m={0}>
      {facts.map(([name, value]) => (
        <SimpleGrid key={name} spacing="xs" style={{ gridTemplateColumns: 'minmax(0, 2fr) minmax(0, 3fr)' }}>
          <Text component="dt" size="sm" c="dimmed">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} className="numbers" style={{ overflowWrap: 'anywhere' }}>
            {value}
          </Text>
        </SimpleGrid>
      ))}
    </Stack>
  );
}

function cardsOf(system: System): { title: string; facts: Fact[] }[] {
  const { database, jobs, deliveries, eventLoop, memory } = system;
  const more = (isComplete: boolean) => (isComplete ? '' : '+');
  return [
    {
      title: 'Service',
      facts: [
        ['Flowhook', system.version],
        ['Node', system.node],
        ['Platform', system.platform],
        ['Role', system.role],
        ['Running for', duration(system.uptimeSeconds * 1_000)],
        ['Address', system.url],
        ['Node id', <IdText key="id" id={system.nodeId} isShort />],
      ],
    },
    {
      title: 'Database',
      facts: [
        ['Kind', `${database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${database.version}`],
        ['Size', bytes(database.bytes)],
        ...(database.walBytes === null ? [] : [['Write-ahead log', bytes(database.walBytes)] as Fact]),
        ['Schema', count(database.schema)],
      ],
    },
    {
      title: 'Runs, of all teams',
      facts: [
        ['Running', count(jobs.running)],
        ['Queued', count(jobs.queued) + more(jobs.complete)],
        ['Retrying', count(jobs.retrying)],
      ],
    },
    {
      title: 'Deliveries, of all teams',
      facts: [
        ['Waiting', count(deliveries.waiting) + more(deliveries.complete)],
        ['The oldest since', <Time key="oldest" at={deliveries.oldestWaitingAt} none="–" />],
        ['Open circuits', count(deliveries.openCircuits)],
      ],
    },
    {
      title: 'Event loop delay, last minute',
      facts: [
        ['Median', milliseconds(eventLoop.p50Ms)],
        ['99th percentile', milliseconds(eventLoop.p99Ms)],
        ['Maximum', milliseconds(eventLoop.maxMs)],
      ],
    },
    {
      title: 'Memory',
      facts: [
        ['Resident', bytes(memory.residentBytes)],
        ['Heap in use', `${bytes(memory.heapUsedBytes)} of ${bytes(memory.heapTotalBytes)}`],
        ['Outside the heap', bytes(memory.externalBytes)],
      ],
    },
  ];
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}
