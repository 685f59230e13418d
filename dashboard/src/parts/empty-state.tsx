/** Why there is nothing, and what to do about it. */
import { Button, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { CommandLine } from './command-line.tsx';

export interface EmptyStateProps {
  /** Such as `No runs yet`. */
  title: string;
  /** One or two sentences. */
  children?: ReactNode;
  /** A command that works as it stands: with the real address, and `$FLOWHOOK_KEY` for the key. */
  command?: string;
  /** A button or link that does the same. */
  action?: ReactNode;
  /** When filters hide everything: takes them away. */
  onClear?: (() => void) | undefined;
}

/** In the place of a list. */
export function EmptyState({ title, children, command, action, onClear }: EmptyStateProps) {
  return (
    <Stack align="center" gap="sm" py="xl" px="md" ta="center">
      <Text fw={600}>{title}</Text>
      {children !== undefined && (
        <Text size="sm" c="dimmed" maw={520} component="div">
          {children}
        </Text>
      )}
      {action}
      {onClear !== undefined && (
        <Button variant="default" onClick={onClear}>
          Clear filters
        </Button>
      )}
      {command !== undefined && <CommandLine command={command} />}
    </Stack>
  );
}
