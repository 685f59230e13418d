/** A record beside the page: its fields, and what each version did with it. The address names it as `record`. */
import { Drawer, Group, Skeleton, Stack, Tabs, Text } from '@mantine/core';
import type { DataRecord, RecordChange } from '../../../../client/src/flowhook-client.ts';
import { NotFound } from '../../../../client/src/flowhook-client.ts';
import { ActionButton } from '../../parts/action.tsx';
import styles from '../../parts/change-list.module.css';
import { ChangedFields, ChangeType } from '../../parts/change-list.tsx';
import { JsonView } from '../../parts/code.tsx';
import { Copy, CopyAsCurl } from '../../parts/copy.tsx';
import type { Filters } from '../../parts/filters.ts';
import { EmptyState, ErrorBox, PageLink } from '../../parts/page.tsx';
import { Time } from '../../parts/values.tsx';
import { type List, useList } from '../../queries/list.ts';
import { recordHistoryList } from '../../queries/workflows.ts';
import { stateOf } from './record-state.ts';

export function RecordDrawer(props: {
  workflowId: string;
  filters: Filters<'record' | 'show'>;
  /** The record as the page shows it, if it does. */
  record?: DataRecord | undefined;
  /** What is shown without a choice in the address. */
  first: 'fields' | 'history';
}) {
  const { workflowId, filters, record, first } = props;
  const id = filters.values.record;
  return (
    <Drawer
      opened={id !== undefined}
      onClose={() => filters.set({ record: undefined, show: undefined })}
      position="right"
      size="min(640px, 100vw)"
      title={
        id !== undefined && (
          <Group gap={4} wrap="nowrap" miw={0}>
            <Text span fw={600} truncate title={id}>
              Record {id}
            </Text>
            <Copy value={id} label="Copy id" />
          </Group>
        )
      }
    >
      {id !== undefined && (
        <Shown
          key={id}
          workflowId={workflowId}
          id={id}
          record={record}
          tab={filters.values.show ?? first}
          onTab={(tab) => filters.set({ show: tab === first ? undefined : tab })}
        />
      )}
    </Drawer>
  );
}

function Shown(props: {
  workflowId: string;
  id: string;
  record: DataRecord | undefined;
  tab: string;
  onTab: (tab: string) => void;
}) {
  const { workflowId, id, record, tab, onTab } = props;
  const list = useList(recordHistoryList(workflowId, id));
  const known = record ?? (list.hasMore ? undefined : stateOf(list.rows));
  return (
    <Tabs value={tab} onChange={(value) => value !== null && onTab(value)} keepMounted={false}>
      <Tabs.List aria-label="Record" mb="sm">
        {/* The focus starts here, and not at the copy button, whose tooltip would open. */}
        <Tabs.Tab value="fields" data-autofocus={tab === 'fields' || undefined}>
          Fields
        </Tabs.Tab>
        <Tabs.Tab value="history" data-autofocus={tab === 'history' || undefined}>
          History
        </Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="fields">
        {known === undefined ? (
          <NoFields list={list} />
        ) : (
          <JsonView value={known} label={`Record ${id}`} maxHeight="calc(100dvh - 160px)" />
        )}
      </Tabs.Panel>
      <Tabs.Panel value="history">
        <History workflowId={workflowId} id={id} list={list} />
      </Tabs.Panel>
    </Tabs>
  );
}

function NoFields({ list }: { list: List<RecordChange> }) {
  if (list.error !== null) return <HistoryError list={list} />;
  if (list.isLoading) return <Skeleton h={120} aria-label="Loading" />;
  if (list.rows[0]?.type === 'removed')
    return <EmptyState title="This record was removed">Its history shows when, and what it was.</EmptyState>;
  return (
    <EmptyState
      title="Not loaded"
      action={
        <ActionButton
          action={{ act: list.loadMore, isActing: list.isLoadingMore }}
          label="Load older changes"
        />
      }
    >
      The fields follow from the whole history of the record.
    </EmptyState>
  );
}

function HistoryError({ list: { error, retry } }: { list: List<RecordChange> }) {
  if (error === null) return null;
  const title = error instanceof NotFound ? 'No kept version has this record' : undefined;
  return <ErrorBox error={error} onRetry={retry} {...(title === undefined ? {} : { title })} />;
}

function History({ workflowId, id, list }: { workflowId: string; id: string; list: List<RecordChange> }) {
  if (list.error !== null && list.rows.length === 0) return <HistoryError list={list} />;
  if (list.isLoading) return <Skeleton h={240} aria-label="Loading" />;
  const path = `/v1/workflows/${encodeURIComponent(workflowId)}/records/${encodeURIComponent(id)}/history`;
  return (
    <Stack gap="xs" align="flex-start">
      <ol className={styles.list} aria-label={`History of ${id}`} style={{ width: '100%' }}>
        {list.rows.map((change) => (
          <li key={change.version} className={styles.change}>
            <Group gap="xs">
              <ChangeType type={change.type} />
              <PageLink
                to="/workflows/$workflowId/changes"
                params={{ workflowId }}
                search={{ version: String(change.version) }}
                className="numbers"
              >
                Version {change.version}
              </PageLink>
              <Text span size="xs" c="dimmed">
                <Time at={change.publishedAt} />
              </Text>
              <PageLink to="/runs/$jobId" params={{ jobId: change.jobId }} fz="xs" ms="auto">
                View run
              </PageLink>
            </Group>
            {change.type === 'existing' && (
              <Text size="xs" c="dimmed" mt={4}>
                What happened before this version is no longer stored.
              </Text>
            )}
            <ChangedFields change={change} />
          </li>
        ))}
      </ol>
      <Group gap="xs">
        {list.hasMore && (
          <ActionButton action={{ act: list.loadMore, isActing: list.isLoadingMore }} label="Older changes" />
        )}
        <CopyAsCurl path={path} />
      </Group>
    </Stack>
  );
}
