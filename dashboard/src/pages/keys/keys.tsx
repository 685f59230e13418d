/** The API keys of the team: list, create, rotate and revoke. */
import { Alert, Badge, Checkbox, Group, Modal, Select, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState } from 'react';
import type { Key, MadeKey, Scope } from '../../../../client/src/flowhook-client.ts';
import { flowhook, serviceUrl } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { column, timeColumn } from '../../parts/columns.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { useFilters } from '../../parts/filters.ts';
import { many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, PageHeader } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Dim } from '../../parts/values.tsx';
import { useList } from '../../queries/list.ts';
import { keyList } from '../../queries/team.ts';
import { NeedsScope, useSession } from '../../session.tsx';

export function KeyListPage() {
  const { can, key: mine } = useSession();
  const [isCreating, creating] = useDisclosure(false);
  const [made, setMade] = useState<MadeKey>();
  return (
    <>
      <PageHeader
        title="API keys"
        description="Keys give programs access to this team, within the scopes that you choose. A new key is shown only once."
        actions={can('admin') && <ActionButton isMain icon="plus" action={creating.open} label="New key" />}
      />
      <NeedsScope scope="admin" what="the API keys">
        <PageTabs of="API keys" shown="Keys" />
        <Keys mineId={mine.id} onMade={setMade} />
      </NeedsScope>
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
    column('Name', '230px', ({ id, name }) => (
      <Group gap="xs" wrap="nowrap" miw={0}>
        <Text span inherit fw={500} truncate title={name}>
          {name}
        </Text>
        {id === mineId && (
          <Badge variant="light" tt="none" style={{ flex: 'none' }}>
            This session
          </Badge>
        )}
      </Group>
    )),
    column('Prefix', 'fits', ({ id, prefix }) => (
      <Text span inherit ff="monospace" title={id}>
        {prefix}…
      </Text>
    )),
    column('State', 'fits', (key) =>
      key.concern === null ? (
        <StateBadge state={stateOf(key)} />
      ) : (
        <Badge variant="light" color="yellow" tt="none" title={CONCERNS[key.concern].advice}>
          {CONCERNS[key.concern].label}
        </Badge>
      ),
    ),
    column('Scopes', 'wraps', ({ scopes }) => scopes.join(', ')),
    timeColumn('Created', ({ createdAt }) => createdAt),
    timeColumn('Last used', ({ lastUsedAt }) => lastUsedAt, 'Never'),
    timeColumn('Ends', ({ expiresAt, revokedAt }) => revokedAt ?? expiresAt, 'Never'),
    column(
      'Actions',
      '190px',
      (key) =>
        stateOf(key) === 'active' && <KeyActions apiKey={key} isMine={key.id === mineId} onMade={onMade} />,
    ),
  ];
  return (
    <>
      {ended > 0 && (
        <Switch
          label={`Show ${many(ended, 'inactive key')}`}
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
        empty={<EmptyState title="No active keys" command="npx flowhook keys create --name my-script" />}
      />
    </>
  );
}

const CONCERNS: Readonly<Record<NonNullable<Key['concern']>, { label: string; advice: string }>> = {
  unused: { label: 'Unused', advice: 'Not used for 90 days. Revoke it if nobody needs it.' },
  expires_soon: { label: 'Expires soon', advice: 'Rotate it, or create another key, before it expires.' },
};

function stateOf({ revokedAt, expiresAt }: Key): 'active' | 'revoked' | 'expired' {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';
}

/** Only the command line can grant `operator`. */
const SCOPES: { value: Scope; label: string; description: string }[] = [
  { value: 'read', label: 'read', description: 'Read records, runs and events' },
  { value: 'queue', label: 'queue', description: 'Start, cancel and repeat runs; push records' },
  { value: 'webhooks', label: 'webhooks', description: 'Manage webhooks, deliveries and inspectors' },
  {
    value: 'admin',
    label: 'admin',
    description: 'Full access to this team, including keys and erasing data',
  },
];
const DAY_MS = 86_400_000;
const ENDS = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In 365 days' },
];

function CreateKey(props: { isOpen: boolean; onClose: () => void; onMade: (made: MadeKey) => void }) {
  const { isOpen, onClose, onMade } = props;
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['read', 'queue', 'webhooks']);
  const [days, setDays] = useState('');
  const create = useAction({
    run: () =>
      flowhook.keys.create({
        name: name.trim(),
        scopes: scopes as Scope[],
        expiresAt: days === '' ? null : new Date(Date.now() + Number(days) * DAY_MS),
      }),
    changes: ['keys'],
    onDone: (made) => {
      setName('');
      onClose();
      onMade(made);
    },
  });
  return (
    <Modal opened={isOpen} onClose={onClose} title="New key">
      <ActionForm action={create} verb="Create key" isReady={scopes.length > 0} onBack={onClose}>
        <TextInput
          label="Name"
          description="The person or program that uses it"
          placeholder="crm-import"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          required
          maxLength={100}
          data-autofocus
        />
        <Checkbox.Group label="Scopes" value={scopes} onChange={setScopes}>
          <Stack gap="xs" mt="xs">
            {SCOPES.map((scope) => (
              <Checkbox key={scope.value} {...scope} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Select
          label="Expires"
          data={ENDS}
          value={days}
          onChange={(value) => setDays(value ?? '')}
          allowDeselect={false}
        />
      </ActionForm>
    </Modal>
  );
}

/** Shows a new key, which is the only time that it is visible. */
function MadeKeyDialog({ made, onClose }: { made: MadeKey | undefined; onClose: () => void }) {
  return (
    <Modal
      opened={made !== undefined}
      onClose={onClose}
      title={`Your new key: ${made?.key.name ?? ''}`}
      size="lg"
      closeOnClickOutside={false}
    >
      {made !== undefined && (
        <Stack gap="md">
          <Alert icon={<Icon name="warning" />} color="orange">
            Copy it now. Flowhook stores only a hash and cannot show the key again.
          </Alert>
          <CommandLine command={made.apiKey} label="Copy the key" />
          <CommandLine
            command={`FLOWHOOK_URL=${serviceUrl}\nFLOWHOOK_KEY=${made.apiKey}`}
            label="Copy for .env"
          />
          <Group justify="flex-end">
            <ActionButton isMain action={onClose} label="I saved the key" />
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

/** How long the old key keeps working after a rotation, so that its users can switch. */
const OVERLAP_SECONDS = 24 * 3_600;

/** @param props.isMine whether revoking the key ends the current session */
function KeyActions(props: { apiKey: Key; isMine: boolean; onMade: (made: MadeKey) => void }) {
  const { apiKey, isMine, onMade } = props;
  const { id, name, scopes } = apiKey;
  const rotate = useAction({
    run: () => flowhook.keys.rotate(id, { overlapSeconds: OVERLAP_SECONDS }),
    changes: ['keys'],
    onDone: onMade,
  });
  const revoke = useAction({
    run: () => flowhook.keys.revoke(id, { self: isMine }),
    changes: ['keys', 'session'],
    done: () => `${name} was revoked`,
  });
  if (scopes.includes('operator')) return <Dim>Command line only</Dim>;
  return (
    <Group gap="xs" wrap="nowrap">
      <ActionButton
        action={rotate}
        asks={{
          title: `Rotate ${name}?`,
          children:
            'This creates a new key with the same scopes and shows it once. The old key keeps working for 24 hours.',
          verb: 'Rotate',
        }}
        aria-label={`Rotate ${name}`}
        label="Rotate"
      />
      <ActionButton
        action={revoke}
        asks={{
          title: `Revoke ${name}?`,
          children: isMine
            ? 'You are signed in with this key. Your session ends immediately, and you need another key to sign in again.'
            : 'Requests with this key fail immediately. This cannot be undone.',
          verb: 'Revoke',
        }}
        aria-label={`Revoke ${name}`}
        label="Revoke"
      />
    </Group>
  );
}
