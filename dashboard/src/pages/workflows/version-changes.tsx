/** The changes that made one version: all, or those of a kind. */
import { Button, Group, SegmentedControl, Skeleton, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type Change, NotFound, type Version } from 'flowhook-client';
import { useState } from 'react';
import { ChangeList } from '../../parts/change-list.tsx';
import { CopyAsCurl } from '../../parts/copy-as-curl.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ErrorBox } from '../../parts/error-box.tsx';
import type { Filters } from '../../parts/filters.ts';
import { ButtonLink } from '../../parts/link.tsx';
import { count, many } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { changesQuery, MAX_SCANNED } from '../../queries/changes.ts';

const TYPES = ['added', 'changed', 'removed'] as const;
const LABELS = { added: 'Added', changed: 'Changed', removed: 'Removed' };
const FIRST = 100;
const MORE = 500;
/** Each is some elements of the page. */
const MOST = 3_000;

export function VersionChanges({
  workflowId,
  number,
  version,
  filters,
}: {
  workflowId: string;
  number: number;
  /** undefined: it is not among those that are loaded. */
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
              Its run
            </ButtonLink>
          )}
          <ButtonLink
            to="/workflows/$workflowId/data"
            params={{ workflowId }}
            search={{ version: String(number) }}
          >
            Its records
          </ButtonLink>
          <CopyAsCurl path={path} />
        </Group>
      </Group>
      <SegmentedControl
        aria-label="Kind of change"
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
          title={error instanceof NotFound ? 'What it changed is no longer kept' : undefined}
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
  const isGivenUp = !isAll && scanned >= MAX_SCANNED;
  if (changes.length === 0 && isAll) {
    return <EmptyState title={type === undefined ? 'Nothing changed' : `Nothing was ${type}`} />;
  }
  return (
    <Stack gap="sm">
      <ChangeList changes={changes} />
      <Group gap="sm">
        <Text size="xs" c="dimmed" className="numbers">
          {isGivenUp
            ? `Only the first ${count(MAX_SCANNED)} changes were searched: the API returns all of them.`
            : isAll
              ? many(changes.length, 'change')
              : `The first ${many(changes.length, 'change')}`}
        </Text>
        {!isAll && !isGivenUp && most < MOST && (
          <Button variant="default" onClick={onMore} loading={isFetching}>
            Show {count(MORE)} more
          </Button>
        )}
      </Group>
    </Stack>
  );
}
