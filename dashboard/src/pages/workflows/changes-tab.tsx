/** What changed from version to version: the versions, and the changes of the one that is chosen. */
import { Box, Skeleton, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { Version } from 'flowhook-client';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import { useFilters } from '../../parts/filters.ts';
import { useList } from '../../queries/list.ts';
import { versionList, workflowQuery } from '../../queries/workflows.ts';
import styles from './changes-tab.module.css';
import { DataEmpty } from './data-empty.tsx';
import { useFollowed } from './use-followed.ts';
import { VersionChanges } from './version-changes.tsx';
import { VersionNav } from './version-nav.tsx';

export function ChangesTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const list = useList(versionList(workflowId));
  const filters = useFilters('version', 'type');
  const [followed, setFollowed] = useFollowed(list.rows[0]?.number ?? 0);
  if (list.error !== null && list.rows.length === 0) {
    return <ErrorBox error={list.error} onRetry={list.retry} />;
  }
  if (list.isLoading || workflow === undefined) return <Loading />;
  const asked = Number(filters.values.version ?? '');
  const newest = list.rows[0];
  if (newest === undefined) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  const number = asked > 0 ? asked : followed > 0 ? followed : newest.number;
  const chosen: Version | undefined = list.rows.find((version) => version.number === number);
  return (
    <Box className={styles.sides}>
      <VersionNav
        list={list}
        chosen={number}
        onChoose={(version) => {
          setFollowed(newest.number);
          filters.set({ version: version === newest.number ? undefined : String(version), type: undefined });
        }}
      />
      {chosen === undefined && !list.hasMore ? (
        <EmptyState title={`Version ${number} is no longer kept`} onClear={filters.clear}>
          Old versions are removed after a while; their changes were sent to the webhooks of that time.
        </EmptyState>
      ) : (
        <VersionChanges
          key={number}
          workflowId={workflowId}
          number={number}
          version={chosen}
          filters={filters}
        />
      )}
    </Box>
  );
}

function Loading() {
  return (
    <Box className={styles.sides} aria-label="Loading" role="status">
      <Stack gap="xs">
        <Skeleton h={40} />
        <Skeleton h={40} />
        <Skeleton h={40} />
      </Stack>
      <Skeleton h={240} />
    </Box>
  );
}
