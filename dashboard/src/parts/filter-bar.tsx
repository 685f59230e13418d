/** The filters above a list. */
import { Group, MultiSelect, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { type ReactNode, useEffect, useState } from 'react';
import { ActionButton } from './action.tsx';
import type { Filters } from './filters.ts';
import { Icon } from './icon.tsx';

/** A filter; `name` is its parameter in the URL. */
export type FilterField<Name extends string> =
  | { kind: 'search'; name: Name; label: string }
  | { kind: 'one'; name: Name; label: string; options: FilterOption[] }
  | { kind: 'many'; name: Name; label: string; options: FilterOption[] };

export interface FilterOption {
  value: string;
  label: string;
}

export interface FilterBarProps<Name extends string> {
  filters: Filters<Name>;
  fields: (FilterField<Name> | false)[];
  /** At the end of the line, such as buttons. */
  children?: ReactNode;
}

export function FilterBar<Name extends string>({ filters, fields, children }: FilterBarProps<Name>) {
  return (
    <Group gap="xs" mb="sm" role="search" aria-label="Filters">
      {fields.map((field) => field && <Field key={field.name} field={field} filters={filters} />)}
      {filters.isFiltered && (
        <ActionButton variant="subtle" action={filters.clear} color="gray" label="Clear" />
      )}
      {children !== undefined && (
        <Group gap="xs" ms="auto">
          {children}
        </Group>
      )}
    </Group>
  );
}

function Field<Name extends string>(props: { field: FilterField<Name>; filters: Filters<Name> }) {
  const { field, filters } = props;
  const { name, label } = field;
  const value = filters.values[name];
  const set = (chosen: string | undefined) =>
    filters.set({ [name]: chosen } as { [n in Name]?: string | undefined });
  if (field.kind === 'search') return <Search label={label} value={value ?? ''} onChange={set} />;
  if (field.kind === 'one') {
    return (
      <Select
        aria-label={label}
        placeholder={label}
        data={field.options}
        value={value ?? null}
        onChange={(chosen) => set(chosen ?? undefined)}
        clearable
        searchable={field.options.length > 8}
        w={180}
      />
    );
  }
  return (
    <MultiSelect
      aria-label={label}
      placeholder={value === undefined ? label : ''}
      data={field.options}
      value={value?.split(',') ?? []}
      onChange={(chosen) => set(chosen.join(','))}
      clearable
      miw={180}
      maw={360}
    />
  );
}

/** Debounces typing; a change of the URL shows immediately. */
function Search(props: { label: string; value: string; onChange: (value: string) => void }) {
  const { label, value, onChange } = props;
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const report = useDebouncedCallback(onChange, 250);
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={label}
      leftSection={<Icon name="search" size={14} />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        report(event.currentTarget.value);
      }}
      data-search
      w={240}
    />
  );
}
