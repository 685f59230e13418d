/** What a workflow is, on a line. Its place is kept while it loads. */
import { SimpleGrid, Skeleton, Stack, Text } from '@mantine/core';
import type { Workflow } from 'flowhook-client';
import type { ReactNode } from 'react';
import { count } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { scheduleWords } from './schedule-words.ts';

const NAMES = ['Records', 'Version', 'Source', 'Mode', 'Runs', 'Next run'] as const;

export function WorkflowFacts({ workflow }: { workflow: Workflow | undefined }) {
  const facts = workflow === undefined ? undefined : factsOf(workflow);
  return (
    <SimpleGrid cols={{ base: 2, xs: 3, md: 6 }} spacing="md" component="dl" m={0} mb="md">
      {NAMES.map((name) => (
        <Stack key={name} gap={0} miw={0}>
          <Text component="dt" size="xs" c="dimmed">
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} className="numbers" style={{ overflowWrap: 'anywhere' }}>
            {facts === undefined ? (
              <Skeleton component="span" display="block" h={16} my={3} w={80} />
            ) : (
              facts[name]
            )}
          </Text>
        </Stack>
      ))}
    </SimpleGrid>
  );
}

function factsOf(workflow: Workflow): Record<(typeof NAMES)[number], ReactNode> {
  const { records, version, source, mode, nextRunAt, schedule, paused } = workflow;
  return {
    Records: count(records),
    Version: version === 0 ? 'none yet' : count(version),
    Source: source.type,
    Mode: mode,
    Runs: scheduleWords(workflow),
    'Next run': paused ? 'once it is resumed' : schedule === null ? '–' : <Time at={nextRunAt} />,
  };
}
