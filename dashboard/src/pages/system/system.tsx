/** The state of the instance, for operators. */
import { Paper, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { System } from '../../../../client/src/flowhook-client.ts';
import { column } from '../../parts/columns.tsx';
import { IdText } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { bytes, count, duration } from '../../parts/format.ts';
import { EmptyState, ErrorBox, type Fact, Facts, PageHeader, Section } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { listOf } from '../../queries/list.ts';
import { systemQuery } from '../../queries/team.ts';
import { useSession } from '../../session.tsx';
import { Checks } from './checks.tsx';

export function SystemPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader title="System" />
      {can('operator') ? (
        <Instance />
      ) : (
        <EmptyState title="Your key cannot see the system" command="flowhook keys create --scopes operator">
          This page needs the scope <code>operator</code>, which the first key of an instance has. Create
          another such key on the server:
        </EmptyState>
      )}
    </>
  );
}

function Instance() {
  const { data: system, error, refetch } = useQuery(systemQuery());
  if (system === undefined) {
    if (error !== null) return <ErrorBox error={error} onRetry={() => void refetch()} />;
    return <Placeholder />;
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
      <Settings settings={system.settings} />
    </Stack>
  );
}

/** As large as the cards, so that the page does not jump. */
function Placeholder() {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" aria-busy="true">
      <Skeleton h={246} />
      <Skeleton h={246} />
      <Skeleton h={246} />
    </SimpleGrid>
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
        ['Uptime', duration(system.uptimeSeconds * 1_000)],
        ['Address', system.url],
        ['Node id', <IdText key="id" id={system.nodeId} isShort />],
      ],
    },
    {
      title: 'Database',
      facts: [
        ['Type', `${database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'} ${database.version}`],
        ['Size', bytes(database.bytes)],
        ...(database.walBytes === null ? [] : [['Write-ahead log', bytes(database.walBytes)] as Fact]),
        ['Schema version', count(database.schema)],
      ],
    },
    {
      title: 'Runs of all teams',
      facts: [
        ['Running', count(jobs.running)],
        ['Queued', count(jobs.queued) + more(jobs.complete)],
        ['Retrying', count(jobs.retrying)],
      ],
    },
    {
      title: 'Deliveries of all teams',
      facts: [
        ['Waiting', count(deliveries.waiting) + more(deliveries.complete)],
        ['Oldest waiting', <Time key="oldest" at={deliveries.oldestWaitingAt} />],
        ['Webhooks backing off', count(deliveries.openCircuits)],
      ],
    },
    {
      title: 'Event loop delay (last minute)',
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
        ['External', bytes(memory.externalBytes)],
      ],
    },
  ];
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

type Setting = System['settings'][number];

const COLUMNS: Column<Setting>[] = [
  column('Setting', '250px', ({ name, variable }) => (
    <Stack gap={0}>
      <Text span inherit fw={500}>
        {name}
      </Text>
      <Text span size="xs" c="dimmed" ff="monospace">
        {variable}
      </Text>
    </Stack>
  )),
  column('Value', { width: '220px', isWrapped: true }, ({ value }) => (
    <Text span inherit ff="monospace" c={value === null ? 'dimmed' : 'inherit'}>
      {value ?? 'None'}
    </Text>
  )),
  column('Set by', '150px', ({ origin, from }) => from ?? origin),
  column('Description', 'wraps', ({ sentence }) => <Prose text={sentence} />),
];

const ORIGINS: Setting['origin'][] = ['flag', 'environment', 'file', 'default'];

/** The settings in effect, and where each is set. */
function Settings({ settings }: { settings: readonly Setting[] }) {
  const filters = useFilters('q', 'from');
  const { q = '', from } = filters.values;
  const wanted = q.trim().toLowerCase();
  const origins = choices<Setting['origin']>(from);
  const found = settings.filter(
    ({ name, variable, sentence, origin }) =>
      (origins === undefined || origins.includes(origin)) &&
      [name, variable, sentence].some((text) => text.toLowerCase().includes(wanted)),
  );
  const options = ORIGINS.map((origin) => ({
    value: origin,
    label: `${origin} (${settings.filter((setting) => setting.origin === origin).length})`,
  }));
  return (
    <Section title="Settings" isBare>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'search', name: 'q', label: 'Search settings' },
          { kind: 'many', name: 'from', label: 'Set by', options },
        ]}
      />
      <DataTable
        label="Settings"
        noun="setting"
        list={listOf(found)}
        columns={COLUMNS}
        idOf={({ name }) => name}
        maxHeight="none"
        empty={<EmptyState title="No settings match these filters" onClear={filters.clear} />}
      />
    </Section>
  );
}
