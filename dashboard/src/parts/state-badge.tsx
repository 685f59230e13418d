/** States, always as an icon, a word and a color, so that nobody depends on the color. */
import { Group, Text } from '@mantine/core';
import { Icon, type IconName } from './icon.tsx';

/** States of jobs, deliveries, webhooks, workflows, keys, signatures and decisions. */
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
  | 'stale'
  | 'expired'
  | 'revoked'
  | 'valid'
  | 'invalid'
  | 'absent'
  | 'pending'
  | 'sent'
  | 'gathered'
  | 'filtered';

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
  stale: ['clock', 'orange'],
  expired: ['clock', 'gray'],
  revoked: ['ban', 'gray'],
  valid: ['check', 'green'],
  invalid: ['cross', 'red'],
  absent: ['help', 'gray'],
  pending: ['clock', 'gray'],
  sent: ['check', 'green'],
  gathered: ['clock', 'gray'],
  filtered: ['ban', 'gray'],
};

export interface StateBadgeProps {
  state: State;
  /** Default: the name of the state. */
  label?: string | undefined;
  /** The reason, as a tooltip. */
  title?: string | undefined;
}

export function StateBadge({ state, label = stateName(state), title }: StateBadgeProps) {
  const [icon] = LOOKS[state];
  return (
    <Group
      component="span"
      display="inline-flex"
      gap={6}
      wrap="nowrap"
      title={title}
      data-state={state}
      style={{ verticalAlign: 'top' }}
    >
      <Icon name={icon} size={14} color={stateColor(state)} />
      <Text span inherit style={{ whiteSpace: 'nowrap' }}>
        {label}
      </Text>
    </Group>
  );
}

/** `Running`, `Given up`. */
export function stateName(state: State): string {
  return state === 'dead' ? 'Given up' : state.charAt(0).toUpperCase() + state.slice(1);
}

/** Options of a state filter. */
export function stateOptions<Name extends State>(states: readonly Name[]): { value: Name; label: string }[] {
  return states.map((value) => ({ value, label: stateName(value) }));
}

/** The color of a state in graphics: a contrast of at least 3:1 in both themes. */
export function stateColor(state: State): string {
  const [, color] = LOOKS[state];
  return `light-dark(var(--mantine-color-${color}-8), var(--mantine-color-${color}-5))`;
}

/** The color of text about a gain, a loss or a change: a contrast of at least 4.5:1 in both themes. */
export function tone(kind: 'good' | 'bad' | 'changed'): string {
  return TONES[kind];
}

const TONES = {
  good: 'light-dark(#1f6a30, var(--mantine-color-green-4))',
  bad: 'var(--mantine-color-error)',
  changed: 'light-dark(#8a4b00, var(--mantine-color-orange-4))',
};
