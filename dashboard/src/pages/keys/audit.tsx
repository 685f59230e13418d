/** Who changed what in the team, newest first. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AuditLine } from 'flowhook-client';
import { CopyAsCurl, IdText } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { PERIODS, stringifySearch, useFilters, useSince } from '../../parts/filters.ts';
import { EmptyState, PageHeader } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import type { Column } from '../../parts/rows.tsx';
import { Time } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { auditList, keyNamesQuery } from '../../queries/team.ts';
import { NeedsScope, useSession } from '../../session.tsx';

export function AuditListPage() {
  const { can } = useSession();
  return (
    <>
      <PageHeader
        title="API keys"
        description="Every change in this team: over the API, in the dashboard, from a shell and by workflow files; and who signed in."
      />
      <PageTabs of="API keys" shown="Audit" />
      {can('admin') ? <Audit /> : <NeedsScope scope="admin" what="the audit" />}
    </>
  );
}

function Audit() {
  const filters = useFilters('action', 'actor', 'target', 'within');
  const { action, actor, target, within } = filters.values;
  const since = useSince(within);
  const list = useList(auditList({ action, actor, target, since }));
  const { data: keys = [] } = useQuery(keyNamesQuery());
  return (
    <>
      <FilterBar
        filters={filters}
        fields={[
          { kind: 'search', name: 'action', label: 'Operation' },
          { kind: 'one', name: 'actor', label: 'Key', options: keys },
          { kind: 'search', name: 'target', label: 'Id of what was changed' },
          { kind: 'one', name: 'within', label: 'Time', options: PERIODS },
        ]}
      >
        <CopyAsCurl path={`/v1/audit${stringifySearch({ action, actor, target, since })}`} />
      </FilterBar>
      <DataTable
        label="Audit"
        noun="change"
        list={list}
        columns={COLUMNS}
        filters={filters}
        empty={<EmptyState title="Nothing has been changed yet" />}
      />
    </>
  );
}

const COLUMNS: Column<AuditLine>[] = [
  {
    id: 'action',
    header: 'Operation',
    width: '190px',
    cell: ({ action }) => (
      <Text span inherit fw={500}>
        {action}
      </Text>
    ),
  },
  { id: 'time', header: 'When', width: 'fits', cell: ({ createdAt }) => <Time at={createdAt} /> },
  {
    id: 'target',
    header: 'What',
    width: '170px',
    cell: ({ target }) =>
      target === null ? '–' : <IdText id={target.id} isShort={target.kind !== 'workflow'} />,
  },
  { id: 'actor', header: 'Who', width: '200px', cell: (line) => <Who line={line} /> },
  { id: 'address', header: 'From', width: '140px', cell: ({ address }) => address ?? '–' },
  { id: 'summary', header: 'More', isWrapped: true, cell: ({ summary }) => <Words>{summary}</Words> },
];

const KINDS: Readonly<Record<AuditLine['actor']['kind'], string>> = {
  key: 'a key',
  session: 'the dashboard',
  command: 'a command',
  file: 'a workflow file',
  service: 'the start',
  unknown: 'unknown',
};

function Who({ line: { actor } }: { line: AuditLine }) {
  const name = actor.name === null || actor.name === '' ? (actor.id ?? KINDS[actor.kind]) : actor.name;
  return <Words title={`${KINDS[actor.kind]}${actor.id === null ? '' : `, ${actor.id}`}`}>{name}</Words>;
}

/** Names that people gave may be one long word. */
function Words({ children, title }: { children: string; title?: string }) {
  return (
    <Text span inherit title={title} style={{ overflowWrap: 'anywhere' }}>
      {children}
    </Text>
  );
}
