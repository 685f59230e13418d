/** The records of a version: search, sorting, a detail view, and export. */
import { Button, Group, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { DataRecord, Workflow } from 'flowhook-client';
import { useMemo, useState } from 'react';
import { CopyAsCurl } from '../../parts/copy-as-curl.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { count, many } from '../../parts/quantity.ts';
import { useList } from '../../queries/list.ts';
import { recordList } from '../../queries/records.ts';
import { versionList, workflowQuery } from '../../queries/workflows.ts';
import { ColumnPicker } from './column-picker.tsx';
import { DataEmpty } from './data-empty.tsx';
import styles from './data-tab.module.css';
import { ExportMenu } from './export-menu.tsx';
import { recordColumns } from './record-columns.tsx';
import { RecordDrawer } from './record-drawer.tsx';
import { chosenFields, fieldsOf, shownFields, sorted } from './records.ts';
import { useFollowed } from './use-followed.ts';
import { VersionPicker } from './version-picker.tsx';

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
          <Button variant="light" onClick={() => setVersion(undefined)}>
            Show version {count(newest)}
          </Button>
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
        idOf={({ id }) => id}
        onOpen={setOpened}
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
            <Button variant="default" onClick={list.loadMore} loading={list.isLoadingMore}>
              Load more
            </Button>
          )}
          <Button variant="subtle" onClick={() => filters.set({ sort: undefined })}>
            Original order
          </Button>
        </Group>
      )}
      <RecordDrawer record={opened} onClose={() => setOpened(null)} />
    </>
  );
}

/** While records are sorted, scrolling loads no more: they would be inserted between the rows that are being read. */
const HELD = { hasMore: false, isLoadingMore: false };
