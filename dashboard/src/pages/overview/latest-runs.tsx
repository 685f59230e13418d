/** The newest runs, as they go. */
import { Group, Paper, Text, Title } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { PageLink } from '../../parts/link.tsx';
import { latestJobs } from '../../queries/jobs.ts';
import { useList } from '../../queries/list.ts';
import { runColumns, tookMs } from '../runs/run-columns.tsx';

export function LatestRuns() {
  const list = useList(latestJobs());
  const navigate = useNavigate();
  const longestMs = Math.max(0, ...list.rows.map(tookMs));
  return (
    <Paper withBorder p="md" component="section" aria-label="Latest runs">
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Latest runs
        </Title>
        <Text size="sm">
          <PageLink to="/runs">All runs</PageLink>
        </Text>
      </Group>
      <DataTable
        label="Latest runs"
        noun="run"
        list={list}
        columns={runColumns({ withWorkflow: true, longestMs })}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/runs/$jobId', params: { jobId: id } })}
        empty={
          <EmptyState
            title="Nothing has run yet"
            command={curl({ method: 'POST', path: '/v1/workflows/people/queue' })}
            action={<PageLink to="/workflows">Choose a workflow and run it</PageLink>}
          />
        }
      />
    </Paper>
  );
}
