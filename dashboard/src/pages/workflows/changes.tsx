/** The versions of a workflow, and the changes of the selected one. */
import { Group, SegmentedControl, Skeleton, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { type Change, NotFound, type Version } from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { ChangeList } from '../../parts/change-list.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { type Filters, useFilters } from '../../parts/filters.ts';
import { count, many } from '../../parts/format.ts';
import { ButtonLink, EmptyState, ErrorBox } from '../../parts/page.tsx';
import { SideList } from '../../parts/side-list.tsx';
import { CountSigns, Time } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { changesQuery, MAX_SCANNED, versionList, workflowQuery } from '../../queries/workflows.ts';
import { DataEmpty, useFollowed } from './data.tsx';

export function ChangesTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const list = useList(versionList(workflowId));
  const filters = useFilters('version', 'type');
  const [followed, setFollowed] = useFollowed(list.rows[0]?.number ?? 0);
  if (list.error !== null && list.rows.length === 0) {
    return <ErrorBox error={list.error} onRetry={list.retry} />;
  }
  if (list.isLoading || workflow === undefined)
    return <Skeleton h={240} aria-label="Loading" role="status" />;
  const asked = Number(filters.values.version ?? '');
  const newest = list.rows[0];
  if (newest === undefined) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  const number = asked > 0 ? asked : followed > 0 ? followed : newest.number;
  const chosen: Version | undefined = list.rows.find((version) => version.number === number);
  return (
    <SideList
      label="Versions"
      items={list.rows}
      chosen={number}
      onChoose={(version) => {
        setFollowed(newest.number);
        filters.set({ version: version === newest.number ? undefined : String(version), type: undefined });
      }}
      line={(version) => <VersionLine version={version} />}
      more={
        list.hasMore && (
          <ActionButton
            variant="subtle"
            action={{ act: list.loadMore, isActing: list.isLoadingMore }}
            mt="xs"
            fullWidth
          >
            Older versions
          </ActionButton>
        )
      }
    >
      {chosen === undefined && !list.hasMore ? (
        <EmptyState title={`Version ${number} is no longer kept`} onClear={filters.clear}>
          Old versions are deleted after a while.
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
    </SideList>
  );
}

function VersionLine({ version: { number, publishedAt, records } }: { version: Version }) {
  return (
    <>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text span inherit fw={500} className="numbers">
          Version {number}
        </Text>
        <Text span size="xs" c="dimmed">
          <Time at={publishedAt} />
        </Text>
      </Group>
      <CountSigns withZeros records={records} />
    </>
  );
}

const TYPES = ['added', 'changed', 'removed'] as const;
const LABELS = { added: 'Added', changed: 'Changed', removed: 'Removed' };
const FIRST = 100;
const MORE = 500;
/** The maximum number of changes on the page. */
const MOST = 3_000;

/** The changes of one version, all or of one type. */
function VersionChanges({
  workflowId,
  number,
  version,
  filters,
}: {
  workflowId: string;
  number: number;
  /** Undefined if it is not loaded. */
  version: Version | undefined;
  filters: Filters<'version' | 'type'>;
}) {
  const [most, setMost] = useState(FIRST);
  const type = TYPES.find((each) => each === filters.values.type);
  const { data, error, isFetching, refetch } = useQuery({
    ...changesQuery({ workflowId, version: number, type, most }),
    placeholderData: keepPreviousData,
  });
  const path = `/v1/workflows/${encodeURIComponent(workflowId)}/changes?since=${number - 1}&until=${number}`;
  return (
    <section aria-label={`Version ${number}`}>
      <Group justify="space-between" gap="sm" mb="sm">
        <Group gap="sm" align="baseline">
          <Title order={2} size="h4">
            Version {count(number)}
          </Title>
          {version !== undefined && (
            <Text span size="sm" c="dimmed">
              <Time at={version.publishedAt} />, {many(version.records.total, 'record')}
            </Text>
          )}
        </Group>
        <Group gap="xs">
          {version !== undefined && (
            <ButtonLink to="/runs/$jobId" params={{ jobId: version.jobId }}>
              View run
            </ButtonLink>
          )}
          <ButtonLink
            to="/workflows/$workflowId/data"
            params={{ workflowId }}
            search={{ version: String(number) }}
          >
            View records
          </ButtonLink>
          <CopyAsCurl path={path} />
        </Group>
      </Group>
      <SegmentedControl
        aria-label="Type of change"
        data={[
          { value: '', label: 'All' },
          ...TYPES.map((each) => ({
            value: each,
            label: version === undefined ? LABELS[each] : `${LABELS[each]} (${count(version.records[each])})`,
          })),
        ]}
        value={type ?? ''}
        onChange={(value) => filters.set({ type: value })}
        mb="sm"
      />
      {error !== null && (
        <ErrorBox
          error={error}
          title={error instanceof NotFound ? 'These changes are no longer kept' : undefined}
          onRetry={() => void refetch()}
        />
      )}
      {error === null && data === undefined && <Skeleton h={240} aria-label="Loading" />}
      {error === null && data !== undefined && (
        <Found
          data={data}
          type={type}
          most={most}
          isFetching={isFetching}
          onMore={() => setMost((before) => before + MORE)}
        />
      )}
    </section>
  );
}

function Found({
  data: { changes, scanned, isAll },
  type,
  most,
  isFetching,
  onMore,
}: {
  data: { changes: Change[]; scanned: number; isAll: boolean };
  type: Change['type'] | undefined;
  most: number;
  isFetching: boolean;
  onMore: () => void;
}) {
  const isIncomplete = !isAll && scanned >= MAX_SCANNED;
  if (changes.length === 0 && isAll) {
    return <EmptyState title={type === undefined ? 'No changes' : `No records were ${type}`} />;
  }
  return (
    <Stack gap="sm">
      <ChangeList changes={changes} />
      <Group gap="sm">
        <Text size="xs" c="dimmed" className="numbers">
          {isIncomplete
            ? `Only the first ${count(MAX_SCANNED)} changes were searched. The API returns all of them.`
            : isAll
              ? many(changes.length, 'change')
              : `First ${many(changes.length, 'change')}`}
        </Text>
        {!isAll && !isIncomplete && most < MOST && (
          <ActionButton action={{ act: onMore, isActing: isFetching }}>Show {count(MORE)} more</ActionButton>
        )}
      </Group>
    </Stack>
  );
}
