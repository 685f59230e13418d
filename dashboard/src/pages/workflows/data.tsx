/** The records of a version: search, sorting, a detail view, and export. */
import {
  Button,
  Checkbox,
  Drawer,
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
import type { DataRecord, Version, Workflow } from 'flowhook-client';
import { useEffect, useMemo, useState } from 'react';
import { ActionButton } from '../../parts/action.tsx';
import { JsonView } from '../../parts/code.tsx';
import { Copy, CopyAsCurl, curl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { count, many, relative } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, PageLink } from '../../parts/page.tsx';
import { useNow } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { recordList, versionList, workflowQuery } from '../../queries/workflows.ts';
import styles from './data.module.css';
import { recordColumns } from './record-columns.tsx';
import { chosenFields, fieldsOf, shownFields, sorted } from './records.ts';

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
  const filters = useFilters('version', 'q', 'columns', 'sort');
  const { q, columns: chosen, sort } = filters.values;
  const chosenVersion = Number(filters.values.version ?? '') || 0;
  const [followed, setFollowed] = useFollowed(newest);
  const version = chosenVersion > 0 ? chosenVersion : followed;
  const list = useList(recordList({ workflowId, version, q }));
  const { rows: versions } = useList(versionList(workflowId));
  const [opened, setOpened] = useState<DataRecord | null>(null);
  const fields = useMemo(() => fieldsOf(list.rows), [list.rows]);
  const shown = shownFields(fields, chosenFields(chosen));
  const shownKey = JSON.stringify(shown);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the fields are an array that is made anew
  const columns = useMemo(
    () => recordColumns({ fields: shown, rows: list.rows, onOpen: setOpened }),
    [shownKey, list.rows],
  );
  const rows = useMemo(() => sorted(list.rows, sort), [list.rows, sort]);
  const setVersion = (chosen: number | undefined) => {
    setFollowed(newest);
    filters.set({ version: chosen === undefined || chosen === newest ? undefined : String(chosen) });
  };
  const query = new URLSearchParams({
    ...(version === newest ? {} : { version: String(version) }),
    ...(q === undefined ? {} : { q }),
    // The service tells the names apart by commas.
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
          onChange={(names) =>
            filters.set({ columns: names?.map((name) => encodeURIComponent(name)).join(',') })
          }
        />
        <ExportMenu workflowId={workflowId} version={version} query={query} isWhole={q === undefined} />
        <CopyAsCurl
          path={`/v1/workflows/${encodeURIComponent(workflowId)}/data${query === '' ? '' : `?${query}`}`}
        />
      </FilterBar>
      {chosenVersion > 0 && version !== newest && (
        <Group gap="sm" mb="sm">
          <Text size="sm">
            This is version {count(version)}; the newest is {count(newest)}.
          </Text>
          <ActionButton variant="light" action={() => setVersion(undefined)}>
            Show version {count(newest)}
          </ActionButton>
        </Group>
      )}
      <div className={styles.table} role="status" aria-label="New versions">
        {chosenVersion === 0 && version < newest && (
          // Over the rows: they do not move.
          <Button
            className={styles.pill}
            radius="xl"
            leftSection={<Icon name="arrowUp" size={14} />}
            onClick={() => setVersion(undefined)}
          >
            Version {count(newest)} is out: show it
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
              ? `Sorted among the ${many(list.rows.length, 'record')} loaded so far, not among all.`
              : `Sorted by ${sort.replace(/^-/, '')}.`}
          </Text>
          {list.hasMore && (
            <ActionButton action={{ act: list.loadMore, isActing: list.isLoadingMore }}>
              Load more
            </ActionButton>
          )}
          <ActionButton variant="subtle" action={() => filters.set({ sort: undefined })}>
            Original order
          </ActionButton>
        </Group>
      )}
      <RecordDrawer record={opened} onClose={() => setOpened(null)} />
    </>
  );
}

/** While records are sorted, scrolling loads no more: they would be inserted between the rows that are being read. */
const HELD = { hasMore: false, isLoadingMore: false };

/** Why there are no records. */
export function DataEmpty({
  workflow: { id, source, version: newest, currentJob },
  q,
  version,
  onClear,
}: {
  workflow: Workflow;
  q: string | undefined;
  version: number;
  onClear: () => void;
}) {
  if (q !== undefined) return <EmptyState title={`No record contains “${q}”`} onClear={onClear} />;
  if (newest > 0) return <EmptyState title={`Version ${version} holds no records`} />;
  const path = `/v1/workflows/${encodeURIComponent(id)}`;
  if (source.type === 'push') {
    const json = [{ id: '1', name: 'Ada Lovelace', email: 'ada@example.com' }];
    return (
      <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/push`, json })}>
        Its records are pushed: send some, and they can be read at once.
      </EmptyState>
    );
  }
  if (currentJob !== null) {
    return (
      <EmptyState
        title="Its first run has not ended"
        action={
          <PageLink to="/runs/$jobId" params={{ jobId: currentJob.id }}>
            Look at the run
          </PageLink>
        }
      >
        Its records appear here once it has.
      </EmptyState>
    );
  }
  return (
    <EmptyState title="No records yet" command={curl({ method: 'POST', path: `${path}/queue` })}>
      They come with its first successful run.
    </EmptyState>
  );
}

/** Which fields are shown as columns. */
function ColumnPicker({
  fields,
  shown,
  onChange,
}: {
  fields: readonly string[];
  shown: readonly string[];
  /** undefined: as they are shown unless told. */
  onChange: (fields: readonly string[] | undefined) => void;
}) {
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

/** Selects the version to show. */
function VersionPicker({
  versions,
  newest,
  version,
  onChange,
}: {
  /** Those that are kept, the newest first, as far as they are loaded. */
  versions: readonly Version[];
  newest: number;
  version: number;
  onChange: (version: number) => void;
}) {
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
  { format: 'csv', label: 'CSV, for tables' },
  { format: 'json', label: 'JSON, one array' },
  { format: 'ndjson', label: 'NDJSON, a record a line' },
] as const;

/** Exports the records: the browser downloads them from the service as a file, however many there are. */
function ExportMenu({
  workflowId,
  version,
  query,
  isWhole,
}: {
  workflowId: string;
  version: number;
  /** The parameters that what is shown was asked with. */
  query: string;
  /** Nothing is searched for. */
  isWhole: boolean;
}) {
  if (version === 0) return null;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="download" size={14} />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {isWhole ? 'All records of this version' : 'The records found, at most 1,000'}
        </Menu.Label>
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

/** An id may hold anything: what is safe in every file system stays. */
function fileName(workflowId: string): string {
  return workflowId.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 100);
}

/** One record as a whole, beside the table. */
function RecordDrawer({ record, onClose }: { record: DataRecord | null; onClose: () => void }) {
  return (
    <Drawer
      opened={record !== null}
      onClose={onClose}
      position="right"
      size="min(560px, 100vw)"
      title={
        record !== null && (
          <Group gap={4} wrap="nowrap" miw={0}>
            <Text span fw={600} truncate title={record.id}>
              Record {record.id}
            </Text>
            <Copy value={record.id} label="Copy its id" />
          </Group>
        )
      }
    >
      {record !== null && (
        <JsonView value={record} label={`Record ${record.id}`} maxHeight="calc(100dvh - 110px)" />
      )}
    </Drawer>
  );
}

/** The newest version, until somebody begins to read: then that one stays. */
export function useFollowed(newest: number): [version: number, set: (version: number) => void] {
  const [followed, setFollowed] = useState(newest);
  useEffect(() => {
    setFollowed((before) => (before === 0 || !isReading() ? newest : before));
  }, [newest]);
  return [followed, setFollowed];
}

/** Scrolled, looking at one, or somewhere in the table. */
function isReading(): boolean {
  const box = document.querySelector('[data-scrolls]');
  return (
    scrollY > 0 ||
    (box !== null && (box.scrollTop > 0 || box.contains(document.activeElement))) ||
    document.querySelector('[role="dialog"]') !== null
  );
}
