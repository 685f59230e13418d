/** The API keys of the team: listing, creating, rotating and revoking them. */
import { Badge, Button, Group, Switch, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Key, MadeKey } from 'flowhook-client';
import { useState } from 'react';
import { type Column, DataTable } from '../../parts/data-table.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { useFilters } from '../../parts/filters.ts';
import { Icon } from '../../parts/icon.tsx';
import { NeedsScope } from '../../parts/needs-scope.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { many } from '../../parts/quantity.ts';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/time.tsx';
import { keyList } from '../../queries/keys.ts';
import { useList } from '../../queries/list.ts';
import { useSession } from '../../session.tsx';
import { CreateKey } from './create-key.tsx';
import { KeyActions } from './key-actions.tsx';
import { KeyTabs } from './key-tabs.tsx';
import { MadeKeyDialog } from './made-key.tsx';

export function KeyListPage() {
  const { can, key: mine } = useSession();
  const [isCreating, creating] = useDisclosure(false);
  const [made, setMade] = useState<MadeKey>();
  return (
    <>
      <PageHeader
        title="API keys"
        description="A key belongs to this team and may do what its scopes allow. It is shown once, when it is made."
        actions={
          can('admin') && (
            <Button leftSection={<Icon name="plus" size={14} />} onClick={creating.open}>
              New key
            </Button>
          )
        }
      />
      {can('admin') && <KeyTabs shown="keys" />}
      {can('admin') ? (
        <Keys mineId={mine.id} onMade={setMade} />
      ) : (
        <NeedsScope scope="admin" what="the API keys" />
      )}
      <CreateKey isOpen={isCreating} onClose={creating.close} onMade={setMade} />
      <MadeKeyDialog made={made} onClose={() => setMade(undefined)} />
    </>
  );
}

function Keys({ mineId, onMade }: { mineId: string; onMade: (made: MadeKey) => void }) {
  const { values, set } = useFilters('ended');
  const all = useList(keyList());
  const showsEnded = values.ended === 'shown';
  const ended = all.rows.filter((key) => stateOf(key) !== 'active').length;
  const rows = showsEnded ? all.rows : all.rows.filter((key) => stateOf(key) === 'active');
  const list = { ...all, rows, total: all.hasMore ? all.total : rows.length };
  const columns: Column<Key>[] = [
    {
      id: 'name',
      header: 'Name',
      width: '230px',
      cell: ({ id, name }) => (
        <Group gap="xs" wrap="nowrap" miw={0}>
          <Text span inherit fw={500} truncate title={name}>
            {name}
          </Text>
          {id === mineId && (
            <Badge variant="light" tt="none" style={{ flex: 'none' }}>
              this session
            </Badge>
          )}
        </Group>
      ),
    },
    {
      id: 'prefix',
      header: 'Begins with',
      width: 'fits',
      cell: ({ id, prefix }) => (
        <Text span inherit ff="monospace" title={id}>
          {prefix}…
        </Text>
      ),
    },
    {
      id: 'state',
      header: 'State',
      width: 'fits',
      cell: (key) =>
        key.concern === null ? (
          <StateBadge state={stateOf(key)} />
        ) : (
          <Badge variant="light" color="yellow" tt="none" title={CONCERNS[key.concern].advice}>
            {CONCERNS[key.concern].label}
          </Badge>
        ),
    },
    { id: 'scopes', header: 'Scopes', isWrapped: true, cell: ({ scopes }) => scopes.join(', ') },
    { id: 'created', header: 'Created', width: 'fits', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      id: 'used',
      header: 'Last used',
      width: 'fits',
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} none="never" />,
    },
    {
      id: 'expires',
      header: 'Expires',
      width: 'fits',
      cell: ({ expiresAt, revokedAt }) => <Time at={revokedAt ?? expiresAt} none="never" />,
    },
    {
      id: 'actions',
      header: 'Actions',
      width: '190px',
      cell: (key) =>
        stateOf(key) === 'active' && <KeyActions apiKey={key} isMine={key.id === mineId} onMade={onMade} />,
    },
  ];
  return (
    <>
      {ended > 0 && (
        <Switch
          label={`Show the ${many(ended, 'key')} that ended`}
          checked={showsEnded}
          onChange={(event) => set({ ended: event.currentTarget.checked ? 'shown' : undefined })}
          mb="sm"
        />
      )}
      <DataTable
        label="API keys"
        noun="key"
        list={list}
        columns={columns}
        idOf={({ id }) => id}
        empty={<EmptyState title="There is no key" command="npx flowhook keys create --name my-script" />}
      />
    </>
  );
}

const CONCERNS: Readonly<Record<NonNullable<Key['concern']>, { label: string; advice: string }>> = {
  unused: { label: 'unused', advice: 'Nobody has used it for 90 days: revoke it if nobody needs it' },
  expires_soon: { label: 'expires soon', advice: 'Make another one before it expires' },
};

function stateOf({ revokedAt, expiresAt }: Key): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}
