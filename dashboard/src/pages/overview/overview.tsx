/** How everything stands: now, over the last 24 hours, and what needs attention. */
import { Stack } from '@mantine/core';
import { PageHeader } from '../../parts/page-header.tsx';
import { useSession } from '../../session.tsx';
import { FirstStepsNote } from '../welcome/first-steps.tsx';
import { Counters } from './counters.tsx';
import { DayCharts } from './day-charts.tsx';
import { LatestRuns } from './latest-runs.tsx';
import { NeedsAttention } from './needs-attention.tsx';

export function OverviewPage() {
  const { team } = useSession();
  return (
    <>
      <PageHeader title="Overview" meta={<span>{team.name}</span>} />
      <Stack gap="md">
        <FirstStepsNote />
        <Counters />
        <NeedsAttention />
        <DayCharts />
        <LatestRuns />
      </Stack>
    </>
  );
}
