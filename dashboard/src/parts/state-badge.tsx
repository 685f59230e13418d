/** A state, always as an icon, a word and a colour, so that none of them is needed alone. */
import { Group, Text } from '@mantine/core';
import { Icon, type IconName } from './icon.tsx';

/** Of jobs, deliveries, webhooks, workflows, keys and whatever else has one. */
export type State =
  | 'queued'
  | 'running'
  | 'retrying'
  | 'finished'
  | 'failed'
  | 'canceled'
  | 'waiting'
  | 'delivered'
  | 'dead'
  | 'active'
  | 'paused'
  | 'failing'
  | 'expired'
  | 'revoked'
  | 'valid'
  | 'invalid'
  | 'absent';

const LOOKS: Record<State, [icon: IconName, color: string]> = {
  queued: ['clock', 'gray'],
  running: ['play', 'blue'],
  retrying: ['refresh', 'orange'],
  finished: ['check', 'green'],
  failed: ['cross', 'red'],
  canceled: ['ban', 'gray'],
  waiting: ['clock', 'orange'],
  delivered: ['check', 'green'],
  dead: ['cross', 'red'],
  active: ['check', 'green'],
  paused: ['pause', 'gray'],
  failing: ['warning', 'orange'],
  expired: ['clock', 'gray'],
  revoked: ['ban', 'gray'],
  valid: ['check', 'green'],
  invalid: ['cross', 'red'],
  absent: ['help', 'gray'],
};

export interface StateBadgeProps {
  state: State;
  /** Instead of the word of the state. */
  label?: string;
  /** Why, on hover. */
  title?: string | undefined;
}

/** A state, small enough for a row. */
export function StateBadge({ state, label = state === 'dead' ? 'given up' : state, title }: StateBadgeProps) {
  const [icon] = LOOKS[state];
  return (
    <Group component="span" display="inline-flex" gap={6} wrap="nowrap" title={title} data-state={state}>
      <Icon name={icon} size={14} color={stateColor(state)} />
      <Text span inherit style={{ whiteSpace: 'nowrap' }}>
        {label}
      </Text>
    </Group>
  );
}

/** The colour of a state, for what is drawn: at least 3 : 1 on the page in both themes. */
export function stateColor(state: State): string {
  const [, color] = LOOKS[state];
  return `light-dark(var(--mantine-color-${color}-8), var(--mantine-color-${color}-5))`;
}

/** The colour of a text about something gained, lost or changed: at least 4.5 : 1 on the page in both themes. */
export function tone(kind: 'good' | 'bad' | 'changed'): string {
  return TONES[kind];
}

const TONES = {
  good: 'light-dark(#1f6a30, var(--mantine-color-green-4))',
  bad: 'var(--mantine-color-error)',
  changed: 'light-dark(#8a4b00, var(--mantine-color-orange-4))',
};
