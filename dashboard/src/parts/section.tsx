/** A part of a page under its own heading. */
import { Group, Paper, Title } from '@mantine/core';
import type { ReactNode } from 'react';

export interface SectionProps {
  title: string;
  /** At the end of the line of the heading. */
  actions?: ReactNode;
  /** What it holds brings its own frame, such as a table. */
  isBare?: boolean;
  children: ReactNode;
}

export function Section({ title, actions, isBare = false, children }: SectionProps) {
  return (
    <section aria-label={title}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h4">
          {title}
        </Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {isBare ? children : <Paper p="sm">{children}</Paper>}
    </section>
  );
}
