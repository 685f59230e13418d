/** What changed: in a version, since a day, or between any two versions that are kept. */
import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useState } from 'react';
import {
  type Change,
  NotFound,
  type Version,
  type Workflow,
} from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { ChangeList } from '../../parts/change-list.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { useFilters } from '../../parts/filters.ts';
import { bytes, count, fileName, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { ButtonLink, EmptyState, ErrorBox } from '../../parts/page.tsx';
import { SideList } from '../../parts/side-list.tsx';
import { CountSigns, Note, Time } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { changesQuery, fieldNamesQuery, versionList, workflowQuery } from '../../queries/workflows.ts';
import { DataEmpty, useFollowed } from './data.tsx';
import { RecordDrawer } from './record-drawer.tsx';
import { changesSearch, namesFrom, namesIn, publishedAt, singleVersion, spanOf } from './span.ts';
import { ChangeFilterBar, type ChangeFilters, SpanBar } from './span-bar.tsx';

export function ChangesTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  const list = useList(versionList(workflowId));
  const filters = useFilters('version', 'since', 'until', 'type', 'field', 'record', 'show');
  const [followed, setFollowed] = useFollowed(list.rows[0]?.number ?? 0);
  if (list.error !== null && list.rows.length === 0) {
    return <ErrorBox error={list.error} onRetry={list.retry} />;
  }
  if (list.isLoading || workflow === undefined)
    return <Skeleton h={240} aria-label="Loading" role="status" />;
  const newest = list.rows[0];
  if (newest === undefined) {
    return <DataEmpty workflow={workflow} q={undefined} version={0} onClear={() => {}} />;
  }
  const last = followed > 0 ? followed : newest.number;
  const number = singleVersion(filters.values, last);
  return (
    <>
      <SpanBar workflow={workflow} versions={list.rows} filters={filters} />
      <SideList
        label="Versions"
        items={list.rows}
        chosen={number ?? 0}
        onChoose={(version) => {
          setFollowed(newest.number);
          filters.set({
            version: version === newest.number ? undefined : String(version),
            since: undefined,
            until: undefined,
          });
        }}
        line={(version) => <VersionLine version={version} />}
        more={
          <Stack gap="xs" mt="xs">
            {list.hasMore && (
              <ActionButton
                variant="subtle"
                action={{ act: list.loadMore, isActing: list.isLoadingMore }}
                fullWidth
                label="Older versions"
              />
            )}
            <Kept workflow={workflow} />
          </Stack>
        }
      >
        {number !== undefined && !list.hasMore && !list.rows.some((version) => version.number === number) ? (
          <EmptyState title={`Version ${number} is no longer kept`} onClear={filters.clear}>
            Old versions are deleted after a while.
          </EmptyState>
        ) : (
          <Changes
            key={JSON.stringify([number, filters.values.since, filters.values.until])}
            workflowId={workflowId}
            versions={list.rows}
            last={last}
            filters={filters}
          />
        )}
      </SideList>
      <RecordDrawer workflowId={workflowId} filters={filters} first="history" />
    </>
  );
}

/** What the history of the workflow costs, and which setting limits it. */
function Kept({ workflow: { history, keep } }: { workflow: Workflow }) {
  return (
    <Note>
      <Text size="xs">
        {many(history.versions, 'version')} kept
        {history.oldest !== null && (
          <>
            , the oldest from <Time at={history.oldest.publishedAt} />
          </>
        )}
        . Older versions take {bytes(history.bytes)}. Limit: {many(keep.versions, 'version')},{' '}
        {many(keep.days, 'day')} (<code>keep</code> in the definition).
      </Text>
    </Note>
  );
}

function VersionLine({ version: { number, publishedAt: at, records } }: { version: Version }) {
  return (
    <>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text span inherit fw={500} className="numbers">
          Version {number}
        </Text>
        <Text span size="xs" c="dimmed">
          <Time at={at} />
        </Text>
      </Group>
      <CountSigns withZeros records={records} />
    </>
  );
}

const FIRST = 100;
const MORE = 500;
/** The maximum number of changes on the page. */
const MOST = 3_000;

function Changes(props: {
  workflowId: string;
  versions: readonly Version[];
  /** The version up to which a range without an end extends. */
  last: number;
  filters: ChangeFilters;
}) {
  const { workflowId, versions, last, filters } = props;
  const [most, setMost] = useState(FIRST);
  const { type } = filters.values;
  const fields = namesFrom(filters.values.field);
  const span = spanOf(filters.values, last);
  const number = singleVersion(filters.values, last);
  const version = versions.find((each) => each.number === number);
  const { data, error, isFetching, isPlaceholderData, refetch } = useQuery({
    ...changesQuery({ workflowId, ...span, type, fields, most }),
    placeholderData: keepPreviousData,
  });
  const { data: names = [] } = useQuery(fieldNamesQuery(workflowId, last));
  const path = `/workflows/${encodeURIComponent(workflowId)}/changes?${changesSearch(span, { type, fields })}`;
  return (
    <section aria-label={number === undefined ? 'Changes in this range' : `Version ${number}`}>
      <Group justify="space-between" gap="sm" mb="sm">
        <Group gap="sm" align="baseline">
          {number === undefined ? (
            <Range from={data?.from} to={data?.to} versions={versions} />
          ) : (
            <Title order={2} size="h4">
              Version {count(number)}
            </Title>
          )}
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
          {number !== undefined && (
            <ButtonLink
              to="/workflows/$workflowId/data"
              params={{ workflowId }}
              search={{ version: String(number) }}
            >
              View records
            </ButtonLink>
          )}
          {error === null && (
            <Button
              component="a"
              variant="default"
              leftSection={<Icon name="download" size={14} />}
              href={`/ui/api/v1${path}&format=csv`}
              download={`${fileName(workflowId)}-changes-${fileName(`${span.since}-${span.until}`)}.csv`}
            >
              Download CSV
            </Button>
          )}
          <CopyAsCurl path={`/v1${path}`} />
        </Group>
      </Group>
      <ChangeFilterBar filters={filters} names={names} counts={version?.records} />
      {error !== null && (
        <ErrorBox
          error={error}
          title={error instanceof NotFound ? 'These changes are no longer kept' : undefined}
          onRetry={() => void refetch()}
        />
      )}
      {error === null && data === undefined && <Skeleton h={240} aria-label="Loading" />}
      {error === null && data !== undefined && (
        <div style={{ opacity: isPlaceholderData && !isFetching ? 0.5 : 1 }}>
          <Found
            data={data}
            filters={filters}
            isRange={number === undefined}
            most={most}
            isFetching={isFetching}
            onMore={() => setMost((before) => before + MORE)}
          />
        </div>
      )}
    </section>
  );
}

/** The versions that are compared. Until they are known, the place stays empty. */
function Range(props: { from: number | undefined; to: number | undefined; versions: readonly Version[] }) {
  const { from, to, versions } = props;
  const [start, end] = [from, to].map((number) => number && publishedAt(versions, number));
  const beginning = from === 0 ? 'the start' : `version ${count(from ?? 0)}`;
  return (
    <>
      <Title order={2} size="h4">
        {from === undefined || to === undefined
          ? 'Changes'
          : `From ${beginning} to ${from === 0 ? 'version ' : ''}${count(to)}`}
      </Title>
      <Text span size="sm" c="dimmed">
        {start && (
          <>
            <Time at={start} />
            {' to '}
          </>
        )}
        {end && <Time at={end} />}
      </Text>
    </>
  );
}

function Found(props: {
  data: { changes: Change[]; isAll: boolean };
  filters: ChangeFilters;
  isRange: boolean;
  most: number;
  isFetching: boolean;
  onMore: () => void;
}) {
  const { filters, isRange, most, isFetching, onMore } = props;
  const { changes, isAll } = props.data;
  const { type, field } = filters.values;
  if (changes.length === 0 && isAll) {
    const isFiltered = type !== undefined || field !== undefined;
    const title = field !== undefined ? 'No changes of these fields' : `No records were ${type}`;
    return (
      <EmptyState
        title={isFiltered ? title : 'No changes'}
        onClear={isFiltered ? () => filters.set({ type: undefined, field: undefined }) : undefined}
      />
    );
  }
  return (
    <Stack gap="sm">
      <ChangeList
        changes={changes}
        onOpen={(record) => filters.set({ record, show: undefined })}
        onField={(name) => filters.set({ field: namesIn([name]) })}
        withVersions={isRange}
      />
      <Group gap="sm">
        <Text size="xs" c="dimmed" className="numbers">
          {isAll ? many(changes.length, 'change') : `First ${many(changes.length, 'change')}`}
          {!isAll && most >= MOST && '. The CSV file has all of them.'}
        </Text>
        {!isAll && most < MOST && (
          <ActionButton action={{ act: onMore, isActing: isFetching }} label={`Show ${count(MORE)} more`} />
        )}
      </Group>
    </Stack>
  );
}
