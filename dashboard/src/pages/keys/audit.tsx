/** The audit log of the team, newest first. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AuditLine } from '../../../../client/src/flowhook-client.ts';
import { column, timeColumn } from '../../parts/columns.tsx';
import { CopyAsCurl, IdText } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { FilterBar } from '../../parts/filter-bar.tsx';
import { PERIODS, stringifySearch, useFilters, useSince } from '../../parts/filters.ts';
import { EmptyState, PageHeader } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import type { Column } from '../../parts/rows.tsx';
import { useList } from '../../queries/list.ts';
import { auditList, keyNamesQuery } from '../../queries/team.ts';
import { NeedsScope } from '../../session.tsx';

export function AuditListPage() {
  return (
    <>
      <PageHeader
        title="API keys"
        description="Every sign-in, and every change in this team through the API, the dashboard, the command line and workflow files."
      />
      <PageTabs of="API keys" shown="Audit" />
      <NeedsScope scope="admin" what="the audit log">
        <Audit />
      </NeedsScope>
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
          { kind: 'search', name: 'target', label: 'Target id' },
          { kind: 'one', name: 'within', label: 'Time', options: PERIODS },
        ]}
      >
        <CopyAsCurl path={`/v1/audit${stringifySearch({ action, actor, target, since })}`} />
      </FilterBar>
      <DataTable
        label="Audit log"
        noun="change"
        list={list}
        columns={COLUMNS}
        filters={filters}
        empty={<EmptyState title="No changes yet" />}
      />
    </>
  );
}

const COLUMNS: Column<AuditLine>[] = [
  column('Operation', '190px', ({ action }) => (
    <Text span inherit fw={500}>
      {action}
    </Text>
  )),
  timeColumn('Time', ({ createdAt }) => createdAt),
  column('Target', '170px', ({ target }) =>
    target === null ? '–' : <IdText id={target.id} isShort={target.kind !== 'workflow'} />,
  ),
  column('Actor', '200px', (line) => <Actor line={line} />),
  column('Address', '140px', ({ address }) => address ?? '–'),
  column('Details', 'wraps', ({ summary }) => <Breakable>{summary}</Breakable>),
];

const KINDS: Readonly<Record<AuditLine['actor']['kind'], string>> = {
  key: 'API key',
  session: 'Dashboard',
  command: 'Command line',
  file: 'Workflow file',
  service: 'Service start',
  unknown: 'Unknown',
};

function Actor({ line: { actor } }: { line: AuditLine }) {
  const name = actor.name === null || actor.name === '' ? (actor.id ?? KINDS[actor.kind]) : actor.name;
  return (
    <Breakable title={`${KINDS[actor.kind]}${actor.id === null ? '' : `, ${actor.id}`}`}>{name}</Breakable>
  );
}

/** Names that users chose may be one long word. */
function Breakable({ children, title }: { children: string; title?: string }) {
  return (
    <Text span inherit title={title} style={{ overflowWrap: 'anywhere' }}>
      {children}
    </Text>
  );
}
