/** One step: what it is good for, a button, and the same at a shell. */
import { Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { CommandLine } from '../../parts/command-line.tsx';
import { Icon } from '../../parts/icon.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import styles from './step.module.css';

export interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  /** One or two sentences. */
  children: ReactNode;
  /** Buttons. */
  action?: ReactNode;
  commands?: { curl: string; cli: string } | undefined;
}

const WAYS = [
  { value: 'curl', label: 'curl' },
  { value: 'cli', label: 'CLI' },
];

export function Step({ number, title, isDone, children, action, commands }: StepProps) {
  const [way, setWay] = useState<string>('curl');
  return (
    <Stack component="li" gap="sm" miw={0}>
      <Group gap="sm" wrap="nowrap">
        <span className={styles.number} data-done={isDone || undefined}>
          {isDone ? <Icon name="check" size={16} color={stateColor('finished')} /> : number}
        </span>
        <Title order={3} size="h5">
          {title}
          {isDone && <span className="visually-hidden"> (done)</span>}
        </Title>
      </Group>
      <Text size="sm" c="dimmed" component="div">
        {children}
      </Text>
      {action !== undefined && <Group gap="sm">{action}</Group>}
      {commands !== undefined && (
        <Stack gap={4} mt="auto">
          <SegmentedControl
            size="xs"
            data={WAYS}
            value={way}
            onChange={setWay}
            aria-label={`How to do it at a shell: ${title}`}
            className={styles.ways}
          />
          <CommandLine command={way === 'curl' ? commands.curl : commands.cli} />
        </Stack>
      )}
    </Stack>
  );
}
