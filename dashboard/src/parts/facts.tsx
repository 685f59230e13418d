/** A few facts side by side: a name in grey, what it is below. */
import { SimpleGrid, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';

export type Fact = readonly [name: string, value: ReactNode];

/** As many columns as there is room for. */
export function Facts({ facts, columns = 6 }: { facts: readonly Fact[]; columns?: number }) {
  return (
    <SimpleGrid cols={{ base: 2, xs: 3, lg: columns }} spacing="md" component="dl" m={0}>
      {facts.map(([name, value]) => (
        <Stack key={name} gap={0} miw={0}>
          <Text component="dt" size="xs" c="dimmed">
            {name}
          </Text>
          <Text
            component="dd"
            size="sm"
            m={0}
            className="numbers"
            // Between words, unless a word is longer than the line: `+5 ~55 −5` and times stay whole.
            style={{ overflowWrap: 'break-word' }}
          >
            {value}
          </Text>
        </Stack>
      ))}
    </SimpleGrid>
  );
}
