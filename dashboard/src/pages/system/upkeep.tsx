/** Shell commands for maintaining the instance. */
import { SimpleGrid, Stack, Text, Title } from '@mantine/core';
import type { System } from 'flowhook-client';
import type { ReactNode } from 'react';
import { CommandLine } from '../../parts/command-line.tsx';
import { Section } from '../../parts/section.tsx';

interface Task {
  title: string;
  sentence: ReactNode;
  command: string;
}

const SQLITE: Task[] = [
  {
    title: 'Copy the database',
    sentence: (
      <>
        While the service runs. <code>FLOWHOOK_BACKUP_EVERY=24h</code> does it by itself. Keep the encryption
        key apart: it is in no copy.
      </>
    ),
    command: 'npx flowhook backup create',
  },
  {
    title: 'Check a copy',
    sentence: 'Its bytes, its tables, and whether its contents are complete.',
    command: 'npx flowhook backup verify',
  },
];
const POSTGRES: Task[] = [
  {
    title: 'Copy the database',
    sentence: 'With the tools of PostgreSQL. Keep the encryption key apart: it is in no copy.',
    command: 'pg_dump --format=custom --file=flowhook.dump "$FLOWHOOK_DATABASE"',
  },
];
const BOTH: Task[] = [
  {
    title: 'Check the settings',
    sentence: 'All settings in effect and where each comes from, before a restart with new ones.',
    command: 'npx flowhook config print',
  },
];

export function Upkeep({ kind }: { kind: System['database']['kind'] }) {
  return (
    <Section title="Upkeep">
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing="xl">
        {[...(kind === 'sqlite' ? SQLITE : POSTGRES), ...BOTH].map(({ title, sentence, command }) => (
          <Stack key={title} gap={4} miw={0}>
            <Title order={3} size="h6">
              {title}
            </Title>
            <Text size="sm" c="dimmed" mb="auto">
              {sentence}
            </Text>
            <CommandLine command={command} label={`Copy the command: ${title}`} />
          </Stack>
        ))}
      </SimpleGrid>
    </Section>
  );
}
