/** Which fields are shown as columns. */
import { Button, Checkbox, Group, Popover, ScrollArea, Stack } from '@mantine/core';
import { Icon } from '../../parts/icon.tsx';

export function ColumnPicker({
  fields,
  shown,
  onChange,
}: {
  fields: readonly string[];
  shown: readonly string[];
  /** undefined: as they are shown unless told. */
  onChange: (fields: readonly string[] | undefined) => void;
}) {
  const others = fields.filter((name) => name !== 'id');
  if (others.length === 0) return null;
  const hidden = fields.length - shown.length;
  return (
    <Popover position="bottom-end" withinPortal trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<Icon name="columns" size={14} />}>
          Columns{hidden > 0 ? ` (${hidden} hidden)` : ''}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Group gap="xs" mb="sm">
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(fields)}>
            All
          </Button>
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(['id'])}>
            None
          </Button>
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(undefined)}>
            Default
          </Button>
        </Group>
        <ScrollArea.Autosize mah={320} maw={280} type="auto">
          <Stack gap="xs">
            {others.map((name) => (
              <Checkbox
                key={name}
                label={name}
                checked={shown.includes(name)}
                onChange={(event) =>
                  onChange(
                    event.currentTarget.checked ? [...shown, name] : shown.filter((each) => each !== name),
                  )
                }
              />
            ))}
          </Stack>
        </ScrollArea.Autosize>
      </Popover.Dropdown>
    </Popover>
  );
}
