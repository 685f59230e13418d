/** The last 24 hours of a webhook, by the hour: what arrived, and how long its answers took. */
import { Paper, SimpleGrid, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { BarChart } from '../../parts/bar-chart.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { duration } from '../../parts/quantity.ts';
import { stateColor } from '../../parts/state-badge.tsx';
import { dayUsageQuery } from '../../queries/usage.ts';

const OUTCOMES = [
  { name: 'delivered', color: stateColor('delivered') },
  { name: 'failed attempts', color: stateColor('failing') },
  { name: 'given up', color: stateColor('dead') },
];
const LATENCY = [{ name: '95th percentile', color: stateColor('running') }];

export function WebhookCharts({ webhookId }: { webhookId: string }) {
  const { data, error, refetch } = useQuery(dayUsageQuery({ webhookId }));
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  const hours = data?.buckets ?? [];
  const outcomes = hours.map(({ start, deliveries }) => ({
    from: start,
    values: [deliveries?.delivered ?? 0, deliveries?.failedAttempts ?? 0, deliveries?.dead ?? 0],
  }));
  const latency = hours.map(({ start, deliveries }) => ({
    from: start,
    values: [deliveries?.latencyMs.p95 ?? 0],
  }));
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <Chart title="Deliveries, last 24 hours">
        <BarChart label="Deliveries of the last 24 hours" series={OUTCOMES} bars={outcomes} height={140} />
      </Chart>
      <Chart title="Response time, last 24 hours">
        <BarChart
          label="Response time of the last 24 hours"
          series={LATENCY}
          bars={latency}
          height={140}
          format={duration}
          hasNoSum
        />
      </Chart>
    </SimpleGrid>
  );
}

function Chart({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper p="md" component="section" aria-label={title}>
      <Title order={2} size="h4" mb="sm">
        {title}
      </Title>
      {children}
    </Paper>
  );
}
