/** How many runs wait and run at this moment, each a way to their list. */
import { Group, Paper, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { JobState } from 'flowhook-client';
import { PageLink } from '../../parts/link.tsx';
import { count } from '../../parts/quantity.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { jobCountsQuery } from '../../queries/jobs.ts';
import { dayUsageQuery } from '../../queries/usage.ts';
import styles from './overview.module.css';

const UNFINISHED: JobState[] = ['running', 'queued', 'retrying'];

export function Counters() {
  const { data: counts } = useQuery(jobCountsQuery());
  const { data: usage } = useQuery(dayUsageQuery());
  const failed = usage?.buckets.reduce((sum, { jobs }) => sum + (jobs?.failed ?? 0), 0);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      {UNFINISHED.map((state) => (
        <Counter key={state} state={state} label={state} value={counts?.[state]} search={{ state }} />
      ))}
      <Counter
        state="failed"
        label="failed, 24 h"
        value={failed}
        search={{ state: 'failed', within: '24h' }}
      />
    </SimpleGrid>
  );
}

function Counter({
  state,
  label,
  value,
  search,
}: {
  state: JobState;
  label: string;
  value: number | undefined;
  search: Record<string, string>;
}) {
  return (
    <Paper withBorder p={0}>
      <PageLink to="/runs" search={search} underline="never" c="inherit" className={styles.counterLink}>
        <Group justify="space-between" wrap="nowrap">
          <StateBadge state={state} label={label} />
          <Text span fz="xl" fw={600} className="numbers">
            {value === undefined ? '–' : count(value)}
          </Text>
        </Group>
      </PageLink>
    </Paper>
  );
}
