/** The records of a version, with search, sorting, a detail view and export. */
import {
  Button,
  Checkbox,
  Group,
  Menu,
  Popover,
  ScrollArea,
  Select,
  Skeleton,
  Stack,
  Text,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import type { Version, Workflow } from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { curl } from '../../parts/curl.ts';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { count, fileName, many, relative } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, PageLink } from '../../parts/page.tsx';
import { useNow } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { recordList, versionList, workflowQuery } from '../../queries/workflows.ts';
import styles from './data.module.css';
import { recordColumns } from './record-columns.tsx';
import { RecordDrawer } from './record-drawer.tsx';
import { chosenFields, fieldsOf, shownFields, sorted } from './records.ts';
import { namesIn } from './span.ts';

export function DataTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const { data: workflow } = useQuery(workflowQuery(workflowId));
  return workflow === undefined ? (
    <Skeleton h={360} aria-label="Loading" />
  ) : (
    <Records key={workflowId} workflow={workflow} />
  );
}

function Records({ workflow }: { workflow: Workflow }) {
  const { id: workflowId, version: newest } = workflow;
  const filters = useFilters('version', 'q', 'columns', 'sort', 'record', 'show');
  const { set } = filters;
  const { q, columns: chosen, sort, record: opened } = filters.values;
  const chosenVersion = Number(filters.values.version ?? '') || 0;
  const [followed, setFollowed] = useFollowed(newest);
  const version = chosenVersion > 0 ? chosenVersion : followed;
  const list = useList(recordList({ workflowId, version, q }));
  const { rows: versions } = useList(versionList(workflowId));
  const fields = useMemo(() => fieldsOf(list.rows), [list.rows]);
  const shown = shownFields(fields, chosenFields(chosen));
  const shownKey = JSON.stringify(shown);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the array of fields is new on each render
  const columns = useMemo(
    () =>
      recordColumns({
        fields: shown,
        rows: list.rows,
        onOpen: (id) => set({ record: id, show: undefined }),
      }),
    [shownKey, list.rows, set],
  );
  const rows = useMemo(() => sorted(list.rows, sort), [list.rows, sort]);
  const setVersion = (chosen: number | undefined) => {
    setFollowed(newest);
    filters.set({ version: chosen === undefined || chosen === newest ? undefined : String(chosen) });
  };
  const query = new URLSearchParams({
    ...(version === newest ? {} : { version: String(version) }),
    ...(q === undefined ? {} : { q }),
    // The API takes comma-separated names.
    ...(chosen === undefined || shown.some((name) => name.includes(',')) ? {} : { fields: shown.join(',') }),
  }).toString();
  return (
    <>
      <FilterBar
        filters={{ ...filters, isFiltered: q !== undefined, clear: () => filters.set({ q: undefined }) }}
        fields={[{ kind: 'search', name: 'q', label: 'Search records' }]}
      >
        <VersionPicker versions={versions} newest={newest} version={version} onChange={setVersion} />
        <ColumnPicker
          fields={fields}
          shown={shown}
          onChange={(names) => filters.set({ columns: names === undefined ? undefined : namesIn(names) })}
        />
        <ExportMenu workflowId={workflowId} version={version} query={query} isWhole={q === undefined} />
        <CopyAsCurl
          path={`/v1/workflows/${encodeURIComponent(workflowId)}/data${query === '' ? '' : `?${query}`}`}
        />
      </FilterBar>
      {chosenVersion > 0 && version !== newest && (
        <Group gap="sm" mb="sm">
          <Text size="sm">
            You are viewing version {count(version)}. The latest is {count(newest)}.
          </Text>
          <ActionButton variant="light" action={() => setVersion(undefined)} label="View latest version" />
        </Group>
      )}
      <div className={styles.table} role="status" aria-label="New versions">
        {chosenVersion === 0 && version < newest && (
          <Button
            className={styles.pill}
            radius="xl"
            leftSection={<Icon name="arrowUp" size={14} />}
            onClick={() => setVersion(undefined)}
          >
            View new version {count(newest)}
          </Button>
        )}
      </div>
      <DataTable
        label="Records"
        noun="record"
        list={{
          ...list,
          rows,
          total: q === undefined ? list.total : null,
          ...(sort === undefined ? {} : HELD),
        }}
        columns={columns}
        sort={{ by: sort, onChange: (by) => filters.set({ sort: by }) }}
        maxHeight={`max(320px, calc(100dvh - ${sort === undefined ? 330 : 372}px))`}
        empty={
          <DataEmpty
            workflow={workflow}
            q={q}
            version={version}
            onClear={() => filters.set({ q: undefined })}
          />
        }
      />
      {sort !== undefined && list.rows.length > 0 && (
        <Group gap="sm" mt="xs">
          <Text size="xs" c="dimmed">
            {list.hasMore
              ? `Only the ${many(list.rows.length, 'record')} loaded so far are sorted.`
              : `Sorted by ${sort.replace(/^-/, '')}.`}
          </Text>
          {list.hasMore && (
            <ActionButton action={{ act: list.loadMore, isActing: list.isLoadingMore }} label="Load more" />
          )}
          <ActionButton
            variant="subtle"
            action={() => filters.set({ sort: undefined })}
            label="Clear sorting"
          />
        </Group>
      )}
      <RecordDrawer
        workflowId={workflowId}
        filters={filters}
        record={list.rows.find(({ id }) => id === opened)}
        first="fields"
      />
    </>
  );
}

/** Scrolling loads no more records while they are sorted, because new ones would appear between the rows being read. */
const HELD = { hasMore: false, isLoadingMore: false };

/** Why there are no records. */
export function DataEmpty(props: {
  workflow: Workflow;
  q: string | undefined;
  version: number;
  onClear: () => void;
}) {
  const { q, version, onClear } = props;
  const { id, source, version: newest, currentJob } = props.workflow;
  if (q !== undefined) return <EmptyState title={`No records contain “${q}”`} onClear={onClear} />;
  if (newest > 0) return <EmptyState title={`Version ${version} has no records`} />;
  const path = `/v1/workflows/${encodeURIComponent(id)}`;
  if (source.type === 'push') {
    const json = [{ id: '1', name: 'Ada Lovelace', email: 'ada@example.com' }];
    return (
      <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/push`, json })}>
        This workflow receives records by push. Send some:
      </EmptyState>
    );
  }
  if (currentJob !== null) {
    return (
      <EmptyState
        title="First run in progress"
        action={
          <PageLink to="/runs/$jobId" params={{ jobId: currentJob.id }}>
            View run
          </PageLink>
        }
      >
        Records appear here when the run succeeds.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/queue` })}>
      Records appear here after the first successful run. Click “Run now” above, or start one over the API:
    </EmptyState>
  );
}

function ColumnPicker(props: {
  fields: readonly string[];
  shown: readonly string[];
  /** Undefined restores the default columns. */
  onChange: (fields: readonly string[] | undefined) => void;
}) {
  const { fields, shown, onChange } = props;
  const others = fields.filter((name) => name !== 'id');
  if (others.length === 0) return null;
  const hidden = fields.length - shown.length;
  return (
    <Popover position="bottom-end" withinPortal trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<Icon name="columns" size={14} />}>
          Columns{hidden > 0 ? ` (${hidden} hidden)` : ''}
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Group gap="xs" mb="sm">
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(fields)}>
            All
          </Button>
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(['id'])}>
            None
          </Button>
          <Button variant="subtle" size="compact-xs" onClick={() => onChange(undefined)}>
            Default
          </Button>
        </Group>
        <ScrollArea.Autosize mah={320} maw={280} type="auto">
          <Stack gap="xs">
            {others.map((name) => (
              <Checkbox
                key={name}
                label={name}
                checked={shown.includes(name)}
                onChange={(event) =>
                  onChange(
                    event.currentTarget.checked ? [...shown, name] : shown.filter((each) => each !== name),
                  )
                }
              />
            ))}
          </Stack>
        </ScrollArea.Autosize>
      </Popover.Dropdown>
    </Popover>
  );
}

function VersionPicker(props: {
  /** The loaded versions, newest first. */
  versions: readonly Version[];
  newest: number;
  version: number;
  onChange: (version: number) => void;
}) {
  const { versions, newest, version, onChange } = props;
  const nowMs = useNow();
  if (newest === 0) return null;
  const known = versions.map(({ number, publishedAt }) => ({
    value: String(number),
    label: `Version ${number}, ${relative(publishedAt, nowMs)}`,
  }));
  const isKnown = known.some(({ value }) => value === String(version));
  return (
    <Select
      aria-label="Version"
      data={isKnown ? known : [{ value: String(version), label: `Version ${version}` }, ...known]}
      value={String(version)}
      onChange={(value) => value !== null && onChange(Number(value))}
      allowDeselect={false}
      searchable={known.length > 12}
      w={200}
    />
  );
}

const FORMATS = [
  { format: 'csv', label: 'CSV' },
  { format: 'json', label: 'JSON (one array)' },
  { format: 'ndjson', label: 'NDJSON (one record per line)' },
] as const;

/** Downloads the records as a file, directly from the service. */
function ExportMenu(props: {
  workflowId: string;
  version: number;
  /** The query parameters of the shown records. */
  query: string;
  /** Whether there is no search. */
  isWhole: boolean;
}) {
  const { workflowId, version, query, isWhole } = props;
  if (version === 0) return null;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="download" size={14} />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{isWhole ? 'All records of this version' : 'Matching records, at most 1,000'}</Menu.Label>
        {FORMATS.map(({ format, label }) => (
          <Menu.Item
            key={format}
            component="a"
            href={`/ui/api/v1/workflows/${encodeURIComponent(workflowId)}/data?format=${format}${query === '' ? '' : `&${query}`}`}
            download={`${fileName(workflowId)}-v${version}.${format}`}
          >
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** Follows the newest version until the user starts to read, then stays with that version. */
export function useFollowed(newest: number): [version: number, set: (version: number) => void] {
  const [followed, setFollowed] = useState(newest);
  useEffect(() => {
    setFollowed((before) => (before === 0 || !isReading() ? newest : before));
  }, [newest]);
  return [followed, setFollowed];
}

/** Whether the user has scrolled, focused the table, or opened a record. */
function isReading(): boolean {
  const box = document.querySelector('[data-scrolls]');
  return (
    scrollY > 0 ||
    (box !== null && (box.scrollTop > 0 || box.contains(document.activeElement))) ||
    document.querySelector('[role="dialog"]') !== null
  );
}
