/** The last 24 hours, by the hour: how runs ended, and what became of deliveries. */
import { Paper, SimpleGrid, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Usage, UsageBucket } from 'flowhook-client';
import { BarChart, type BarSeries } from '../../parts/bar-chart.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { stateColor } from '../../parts/state-badge.tsx';
import { dayUsageQuery } from '../../queries/usage.ts';

interface Chart {
  title: string;
  series: BarSeries[];
  valuesOf: (bucket: UsageBucket) => number[];
}

const CHARTS: Chart[] = [
  {
    title: 'Runs, last 24 hours',
    series: [
      { name: 'finished', color: stateColor('finished') },
      { name: 'failed', color: stateColor('failed') },
      { name: 'canceled', color: stateColor('canceled') },
    ],
    valuesOf: ({ jobs }) => [jobs?.finished ?? 0, jobs?.failed ?? 0, jobs?.canceled ?? 0],
  },
  {
    title: 'Deliveries, last 24 hours',
    series: [
      { name: 'delivered', color: stateColor('delivered') },
      { name: 'failed attempts', color: stateColor('failing') },
      { name: 'given up', color: stateColor('dead') },
    ],
    valuesOf: ({ deliveries }) => [
      deliveries?.delivered ?? 0,
      deliveries?.failedAttempts ?? 0,
      deliveries?.dead ?? 0,
    ],
  },
];

export function DayCharts() {
  const { data, error, refetch } = useQuery(dayUsageQuery());
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      {CHARTS.map(({ title, series, valuesOf }) => (
        <Paper key={title} withBorder p="md" component="section" aria-label={title}>
          <Title order={2} size="h4" mb="sm">
            {title}
          </Title>
          <BarChart label={title} series={series} bars={barsOf(data, valuesOf)} height={110} />
        </Paper>
      ))}
    </SimpleGrid>
  );
}

function barsOf(usage: Usage | undefined, valuesOf: Chart['valuesOf']) {
  return usage?.buckets.map((bucket) => ({ from: bucket.start, values: valuesOf(bucket) })) ?? [];
}
