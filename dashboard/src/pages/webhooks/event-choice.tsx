/** Selects the events of a webhook: all, or types from the catalogue, each with a sample body. */
import { Anchor, Checkbox, Collapse, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { EventKind } from 'flowhook-client';
import { useState } from 'react';
import { ErrorBox } from '../../parts/error-box.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Prose } from '../../parts/prose.tsx';
import { eventTypesQuery } from '../../queries/events.ts';
import styles from './webhooks.module.css';

const ALL_EVENTS = '*';

export function EventChoice({
  chosen,
  onChange,
}: {
  /** Types, or `*` alone. */
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const { data: types = [], error, refetch } = useQuery(eventTypesQuery());
  const isAll = chosen.includes(ALL_EVENTS);
  const toggle = (type: string, isOn: boolean) =>
    onChange(isOn ? [...chosen, type] : chosen.filter((one) => one !== type));
  return (
    <fieldset className={styles.events}>
      <legend>Events</legend>
      {error !== null && <ErrorBox error={error} onRetry={() => void refetch()} />}
      <Stack gap="xs">
        <Checkbox
          label="All events, including those of later versions"
          checked={isAll}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? [ALL_EVENTS] : [])}
        />
        {types.filter(isChosenFrom).map((kind) => (
          <Kind
            key={kind.type}
            kind={kind}
            isChosen={isAll || chosen.includes(kind.type)}
            isDisabled={isAll}
            onToggle={(isOn) => toggle(kind.type, isOn)}
          />
        ))}
      </Stack>
    </fieldset>
  );
}

/** A test reaches whichever webhook it is sent to. */
function isChosenFrom({ type }: EventKind): boolean {
  return type !== 'webhook_test';
}

function Kind({
  kind: { type, description, example },
  isChosen,
  isDisabled,
  onToggle,
}: {
  kind: EventKind;
  isChosen: boolean;
  isDisabled: boolean;
  onToggle: (isOn: boolean) => void;
}) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div>
      <Group justify="space-between" wrap="nowrap" align="flex-start" gap="sm">
        <Checkbox
          label={type}
          description={<Prose text={description} />}
          checked={isChosen}
          disabled={isDisabled}
          onChange={({ currentTarget }) => onToggle(currentTarget.checked)}
        />
        <Anchor
          component="button"
          type="button"
          size="xs"
          aria-expanded={isOpen}
          aria-label={`Sample of ${type}`}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? 'Hide' : 'Sample'}
        </Anchor>
      </Group>
      <Collapse expanded={isOpen}>
        {isOpen && (
          <Text component="div" mt="xs">
            <JsonView value={example} label={`A body of ${type}`} maxHeight="220px" />
          </Text>
        )}
      </Collapse>
    </div>
  );
}
