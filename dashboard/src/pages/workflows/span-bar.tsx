/** Chooses whose changes are shown: since a day in one click, between any two kept versions or times, by type and field. */
import {
  Button,
  Chip,
  Group,
  MultiSelect,
  Popover,
  SegmentedControl,
  Select,
  Stack,
  TextInput,
} from '@mantine/core';
import { useId, useState } from 'react';
import type { Version, Workflow } from '../../../../client/src/flowhook-client.ts';
import { ActionForm } from '../../parts/action.tsx';
import type { Filters } from '../../parts/filters.ts';
import { absolute, useZone } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Note, useNow } from '../../parts/values.tsx';
import { fromInput, isVersion, namesFrom, namesIn, presets, toInput } from './span.ts';

export type ChangeFilters = Filters<'version' | 'since' | 'until' | 'type' | 'field' | 'record' | 'show'>;

/** The value of the choice for the newest version alone. */
const NEWEST = '';

export function SpanBar(props: { workflow: Workflow; versions: readonly Version[]; filters: ChangeFilters }) {
  const { versions, filters } = props;
  const { history } = props.workflow;
  const zone = useZone();
  // The presets change only at midnight.
  const days = presets(useNow(), zone);
  const { version, since, until } = filters.values;
  const isCustom = since !== undefined && (until !== undefined || !days.some((day) => day.since === since));
  const oldest = history.oldest;
  // Without a pruned version, there were no records before the first one.
  const isKept = (start: string) => oldest === null || oldest.version <= 1 || start >= oldest.publishedAt;
  return (
    <Group gap={6} mb="sm" role="group" aria-label="Changes since">
      <Chip.Group
        value={isCustom || version !== undefined ? null : (since ?? NEWEST)}
        onChange={(value) =>
          typeof value === 'string' &&
          filters.set({ since: value === NEWEST ? undefined : value, until: undefined, version: undefined })
        }
      >
        <Chip value={NEWEST} size="xs">
          Newest version
        </Chip>
        {days.map(({ label, since: start }, index) => (
          <Chip
            key={start}
            value={start}
            size="xs"
            disabled={!isKept(start)}
            title={
              isKept(start) ? `Since ${absolute(start, zone)}` : 'Versions of this day are no longer kept'
            }
          >
            {index === 0 ? `Since ${label.toLowerCase()}` : label}
          </Chip>
        ))}
      </Chip.Group>
      <Between
        key={`${version} ${since} ${until}`}
        versions={versions}
        filters={filters}
        isChosen={isCustom}
        zone={zone}
      />
    </Group>
  );
}

/** A form for any two versions or times. */
function Between(props: {
  versions: readonly Version[];
  filters: ChangeFilters;
  isChosen: boolean;
  zone: 'local' | 'utc';
}) {
  const { versions, filters, isChosen, zone } = props;
  const { version, since, until } = filters.values;
  const [isOpen, setIsOpen] = useState(false);
  const [from, setFrom] = useState(
    since ?? (version === undefined ? undefined : String(Number(version) - 1)),
  );
  const [to, setTo] = useState(until ?? version);
  return (
    <Popover opened={isOpen} onChange={setIsOpen} position="bottom-start" withinPortal trapFocus width={320}>
      <Popover.Target>
        <Button
          variant={isChosen ? 'light' : 'default'}
          size="compact-sm"
          leftSection={<Icon name="clock" size={14} />}
          onClick={() => setIsOpen(!isOpen)}
        >
          Between…
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Between two versions or times">
        <ActionForm
          verb="Compare"
          isReady={from !== undefined}
          action={{
            act: () => {
              setIsOpen(false);
              filters.set({ since: from, until: to, version: undefined });
            },
          }}
        >
          <Moment label="From" value={from} onChange={setFrom} versions={versions} zone={zone} none="" />
          <Moment
            label="To"
            value={to}
            onChange={setTo}
            versions={versions}
            zone={zone}
            none="The newest version"
          />
          <Note>A time means the newest version that was published by then.</Note>
        </ActionForm>
      </Popover.Dropdown>
    </Popover>
  );
}

function Moment(props: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  versions: readonly Version[];
  zone: 'local' | 'utc';
  none: string;
}) {
  const { label, value, onChange, versions, zone, none } = props;
  const id = useId();
  const chosen = value !== undefined && isVersion(value) ? value : null;
  const known = versions.map(({ number, publishedAt }) => ({
    value: String(number),
    label: `Version ${number}, ${absolute(publishedAt, zone)}`,
  }));
  if (chosen === '0' || versions.at(-1)?.number === 1)
    known.push({ value: '0', label: 'Before the first version' });
  const isKnown = chosen === null || known.some((each) => each.value === chosen);
  return (
    <Stack gap={4}>
      <Select
        id={id}
        label={`${label} version`}
        placeholder={none === '' ? 'Choose a version' : none}
        data={isKnown ? known : [{ value: chosen, label: `Version ${chosen}` }, ...known]}
        value={chosen}
        onChange={(version) => onChange(version ?? undefined)}
        clearable
        searchable={known.length > 8}
        comboboxProps={{ withinPortal: false }}
      />
      <TextInput
        type="datetime-local"
        label={`or ${label.toLowerCase()} time${zone === 'utc' ? ' (UTC)' : ''}`}
        value={toInput(value, zone)}
        onChange={(event) => onChange(fromInput(event.currentTarget.value, zone))}
      />
    </Stack>
  );
}

const TYPES = ['added', 'changed', 'removed'] as const;
const LABELS = { added: 'Added', changed: 'Changed', removed: 'Removed' };
/** Further fields are in a list below a button. */
const SHOWN = 8;

/** Filters by type of change and by field. @param props.counts the numbers of changes by type, if they are known */
export function ChangeFilterBar(props: {
  filters: ChangeFilters;
  /** The fields to choose from. */
  names: readonly string[];
  counts: Version['records'] | undefined;
}) {
  const { filters, names, counts } = props;
  const chosen = namesFrom(filters.values.field);
  const choose = (fields: readonly string[]) => filters.set({ field: namesIn(fields) });
  const all = [...new Set([...names, ...chosen])].filter((name) => name !== 'id');
  const shown = all.slice(0, SHOWN);
  const more = all.slice(SHOWN);
  const type = TYPES.find((each) => each === filters.values.type);
  return (
    <Group gap="sm" mb="sm" role="search" aria-label="Filters">
      <SegmentedControl
        aria-label="Type of change"
        size="xs"
        data={[
          { value: '', label: 'All' },
          ...TYPES.map((each) => ({
            value: each,
            label: counts === undefined ? LABELS[each] : `${LABELS[each]} (${counts[each]})`,
          })),
        ]}
        value={type ?? ''}
        onChange={(value) => filters.set({ type: value })}
      />
      {all.length > 0 && (
        <Group gap={6} role="group" aria-label="Only these fields">
          <Chip.Group
            multiple
            value={chosen}
            onChange={(values) =>
              choose([
                ...values.filter((name) => !more.includes(name)),
                ...chosen.filter((name) => more.includes(name)),
              ])
            }
          >
            {shown.map((name) => (
              <Chip key={name} value={name} size="xs">
                <span title={name}>{name.length > 24 ? `${name.slice(0, 23)}…` : name}</span>
              </Chip>
            ))}
          </Chip.Group>
          {more.length > 0 && (
            <MultiSelect
              aria-label="More fields"
              placeholder="More fields"
              size="xs"
              data={more}
              value={chosen.filter((name) => more.includes(name))}
              onChange={(values) => choose([...chosen.filter((name) => !more.includes(name)), ...values])}
              searchable
              clearable
              w={180}
            />
          )}
        </Group>
      )}
    </Group>
  );
}
