/** Numbers that belong together: beside each other on one line, however narrow the place is. */
import { Group } from '@mantine/core';
import type { ReactNode } from 'react';

export function Numbers({ children }: { children: ReactNode }) {
  return (
    <Group
      component="span"
      display="inline-flex"
      gap="xs"
      wrap="nowrap"
      className="numbers"
      style={{ whiteSpace: 'nowrap', flexShrink: 0 }}
    >
      {children}
    </Group>
  );
}
