/** The quarantine of a workflow: records that did not meet an expectation. They are accepted or dropped here. */
import { Button, Drawer, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import {
  type DataRecord,
  NotFound,
  type QuarantinedRecord,
  type QuarantineSelection,
} from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionButton, useAction } from '../../parts/action.tsx';
import { JsonView } from '../../parts/code.tsx';
import { column, timeColumn } from '../../parts/columns.tsx';
import { CopyAsCurl } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { useFilters } from '../../parts/filters.ts';
import { count, fileName, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, ErrorBox, PageLink } from '../../parts/page.tsx';
import type { Column } from '../../parts/rows.tsx';
import { IdButton, Note, Prose } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { quarantinedQuery, quarantineList } from '../../queries/workflows.ts';
import { useSession } from '../../session.tsx';

/** The maximum number of ids in one request. */
const MOST_IDS = 1_000;

export function QuarantineTab() {
  const { workflowId } = useParams({ from: '/workflows/$workflowId' });
  const filters = useFilters('job', 'field', 'record');
  const { job: jobId, field, record } = filters.values;
  const { can } = useSession();
  const list = useList(quarantineList(workflowId, { jobId, field }));
  const [shown, setShown] = useState<readonly QuarantinedRecord[]>([]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { set } = filters;
  const columns = useMemo(() => columnsOf((id) => set({ record: id })), [set]);
  const isFiltered = jobId !== undefined || field !== undefined;
  const ownFilters = { ...filters, isFiltered, clear: () => set({ job: undefined, field: undefined }) };
  const query = new URLSearchParams({
    ...(jobId === undefined ? {} : { jobId }),
    ...(field === undefined ? {} : { field }),
  }).toString();
  const path = `/workflows/${encodeURIComponent(workflowId)}/quarantine${query === '' ? '' : `?${query}`}`;
  const fields = [...new Set(list.rows.flatMap(({ reasons }) => reasons.map((reason) => reason.field)))];
  // What later runs set aside is not accepted unseen. Ids of jobs are in the order of time.
  const untilJobId = shown.reduce((last, { jobId: id }) => (id > last ? id : last), '') || undefined;
  const ids = [...selected].slice(0, MOST_IDS);
  const isUnknown = list.hasMore && isFiltered;
  const number = list.hasMore ? (list.total ?? 0) - list.rows.length + shown.length : shown.length;
  const choice: { selection: QuarantineSelection; words: string } =
    ids.length > 0
      ? { selection: { ids, untilJobId }, words: many(ids.length, 'record') }
      : {
          selection: { all: true, jobId, field, untilJobId },
          words: isUnknown ? 'all records that match the filters' : many(number, 'record'),
        };
  return (
    <>
      <FilterBar
        filters={ownFilters}
        fields={[
          {
            kind: 'one',
            name: 'field',
            label: 'Field',
            options: [...new Set([...fields, ...(field === undefined ? [] : [field])])].map((value) => ({
              value,
              label: value,
            })),
          },
        ]}
      >
        {list.rows.length > 0 && (
          <>
            {can('queue') && (
              <Decide
                workflowId={workflowId}
                {...choice}
                which={selected.size > 0 ? 'selected' : 'all'}
                onDone={() => setSelected(new Set())}
              />
            )}
            {(['csv', 'ndjson'] as const).map((format) => (
              <Button
                key={format}
                component="a"
                variant="default"
                leftSection={<Icon name="download" size={14} />}
                href={`/ui/api/v1${path}${query === '' ? '?' : '&'}format=${format}`}
                download={`${fileName(workflowId)}-quarantine.${format}`}
              >
                {format.toUpperCase()}
              </Button>
            ))}
            <CopyAsCurl path={`/v1${path}`} />
          </>
        )}
      </FilterBar>
      {jobId !== undefined && (
        <Text size="sm" c="dimmed" mb="sm">
          Only what{' '}
          <PageLink to="/runs/$jobId" params={{ jobId }} underline="always">
            one run
          </PageLink>{' '}
          has set aside.
        </Text>
      )}
      <DataTable
        label="Quarantine"
        noun="record"
        list={list}
        columns={columns}
        onShown={setShown}
        filters={ownFilters}
        selection={can('queue') ? { ids: selected, onChange: setSelected } : undefined}
        empty={
          <EmptyState title="The quarantine is empty">
            With <code>otherwise: quarantine</code> in <code>expect</code>, records that do not meet an
            expectation of their fields are set aside here, and the rest is published.
          </EmptyState>
        }
      />
      <Drawer
        opened={record !== undefined}
        onClose={() => set({ record: undefined })}
        position="right"
        size="min(960px, 100vw)"
        title={
          <Text fw={600} pe="xs" style={{ overflowWrap: 'anywhere' }}>
            Record {record} in the quarantine
          </Text>
        }
      >
        {record !== undefined && (
          <Beside
            key={record}
            workflowId={workflowId}
            recordId={record}
            onDone={() => set({ record: undefined })}
          />
        )}
      </Drawer>
    </>
  );
}

function columnsOf(onOpen: (id: string) => void): Column<QuarantinedRecord>[] {
  return [
    column('Record', '200px', ({ id }) => <IdButton id={id} onOpen={onOpen} />),
    column('Reasons', 'wraps', ({ reasons }) => <Reasons reasons={reasons} />),
    timeColumn('Set aside', ({ setAsideAt }) => setAsideAt),
    column('Run', 'fits', ({ jobId }) => (
      <PageLink to="/runs/$jobId" params={{ jobId }} title={jobId}>
        View run
      </PageLink>
    )),
  ];
}

/** Accepts or drops, after a confirmation that names the number. */
function Decide(props: {
  workflowId: string;
  selection: QuarantineSelection;
  words: string;
  /** After the verb on the buttons. */
  which: string;
  /** Selected rows are held in place, so the selection must end. */
  onDone: () => void;
}) {
  const { workflowId, selection, words, which, onDone } = props;
  const accept = useAction({
    run: (confirmed: QuarantineSelection) => flowhook.quarantine.accept(workflowId, confirmed),
    changes: ['versions', 'workflows', 'jobs'],
    done: ({ accepted, conflicts }) => doneWords('Accepted', accepted, conflicts.length),
    onDone,
  });
  const drop = useAction({
    run: (confirmed: QuarantineSelection) => flowhook.quarantine.drop(workflowId, confirmed),
    changes: ['quarantine'],
    done: ({ dropped, conflicts }) => doneWords('Dropped', dropped, conflicts.length),
    onDone,
  });
  // The dialog confirms what was selected when it opened, even if the list changes behind it.
  return (
    <>
      <ActionButton
        isMain
        icon="check"
        action={{ ...accept, act: () => accept.act(selection) }}
        asks={{
          title: `Accept ${words}?`,
          children:
            'They are published as they are, without a check of expectations, and replace published records with the same ids.',
          verb: `Accept ${words}`,
        }}
        label={`Accept ${which}`}
      />
      <ActionButton
        icon="trash"
        action={{ ...drop, act: () => drop.act(selection) }}
        asks={{
          title: `Drop ${words}?`,
          children: 'They are deleted from the quarantine. Published records do not change.',
          verb: `Drop ${words}`,
        }}
        label={`Drop ${which}`}
      />
    </>
  );
}

/** @param left the number of records that are not what the user saw any more, and were left as they are */
function doneWords(verb: string, done: number, left: number): string {
  return `${verb} ${many(done, 'record')}${left === 0 ? '' : `. ${many(left, 'record')} had changed and stayed`}`;
}

function Reasons({ reasons }: Pick<QuarantinedRecord, 'reasons'>) {
  return (
    <Stack gap={0}>
      {reasons.map(({ field, expectation, message }) => (
        <span key={`${field} ${expectation}`}>
          <Prose text={message} />
        </span>
      ))}
    </Stack>
  );
}

/** A record that was set aside, beside the published one of the same id. */
function Beside(props: { workflowId: string; recordId: string; onDone: () => void }) {
  const { workflowId, recordId, onDone } = props;
  const { can } = useSession();
  const { data, error, refetch } = useQuery(quarantinedQuery(workflowId, recordId));
  if (error instanceof NotFound) {
    return (
      <EmptyState title="This record is no longer in the quarantine">
        It was accepted or dropped, or a newer record with its id was published.
      </EmptyState>
    );
  }
  if (error !== null && data === undefined) return <ErrorBox error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton h={240} aria-label="Loading" />;
  const { record, published, reasons, position, jobId } = data;
  return (
    <Stack gap="sm">
      <Reasons reasons={reasons} />
      <Group gap="xs">
        {can('queue') && (
          <Decide
            workflowId={workflowId}
            selection={{ ids: [recordId], untilJobId: jobId }}
            words="this record"
            which="record"
            onDone={onDone}
          />
        )}
        <Note>
          Record {count(position)} of{' '}
          <PageLink to="/runs/$jobId" params={{ jobId }} underline="always">
            its run
          </PageLink>
        </Note>
      </Group>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        <Side title="Set aside" record={record} />
        <Side title="Published" record={published} />
      </SimpleGrid>
    </Stack>
  );
}

function Side({ title, record }: { title: string; record: DataRecord | null }) {
  return (
    <section aria-label={title}>
      <Title order={2} size="h5" mb={4}>
        {title}
      </Title>
      {record === null ? (
        <Note>No published record has this id.</Note>
      ) : (
        <JsonView value={record} label={`Record, ${title.toLowerCase()}`} maxHeight="60vh" />
      )}
    </section>
  );
}
