/** The settings that hold, and where each comes from. */
import { Stack, Text } from '@mantine/core';
import type { System } from 'flowhook-client';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { choices, useFilters } from '../../parts/filters.ts';
import { Prose } from '../../parts/prose.tsx';
import { Section } from '../../parts/section.tsx';
import { listOf } from '../../queries/list.ts';

type Setting = System['settings'][number];

const COLUMNS: Column<Setting>[] = [
  {
    id: 'name',
    header: 'Setting',
    width: '250px',
    cell: ({ name, variable }) => (
      <Stack gap={0}>
        <Text span inherit fw={500}>
          {name}
        </Text>
        <Text span size="xs" c="dimmed" ff="monospace">
          {variable}
        </Text>
      </Stack>
    ),
  },
  {
    id: 'value',
    header: 'Value',
    width: '220px',
    isWrapped: true,
    cell: ({ value }) => (
      <Text span inherit ff="monospace" c={value === null ? 'dimmed' : 'inherit'}>
        {value ?? 'none'}
      </Text>
    ),
  },
  { id: 'origin', header: 'From', width: '150px', cell: ({ origin, from }) => from ?? origin },
  {
    id: 'sentence',
    header: 'What it is',
    isWrapped: true,
    cell: ({ sentence }) => <Prose text={sentence} />,
  },
];

const ORIGINS: Setting['origin'][] = ['flag', 'environment', 'file', 'default'];

export function Settings({ settings }: { settings: readonly Setting[] }) {
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
          { kind: 'search', name: 'q', label: 'Search the settings' },
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
        empty={<EmptyState title="No setting matches" onClear={filters.clear} />}
      />
    </Section>
  );
}
