/** The API keys of the team: listing, creating, rotating and revoking them. */
import { Alert, Badge, Checkbox, Group, Modal, Select, Stack, Switch, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import type { Key, MadeKey, Scope } from 'flowhook-client';
import { useState } from 'react';
import { flowhook, serviceUrl } from '../../client.ts';
import { ActionButton, ActionForm, useAction } from '../../parts/action.tsx';
import { CommandLine } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { useFilters } from '../../parts/filters.ts';
import { many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { EmptyState, PageHeader } from '../../parts/page.tsx';
import { PageTabs } from '../../parts/page-tabs.tsx';
import type { Column } from '../../parts/rows.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Time } from '../../parts/values.tsx';
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
        description="A key belongs to this team and may do what its scopes allow. It is shown once, when it is made."
        actions={
          can('admin') && (
            <ActionButton isMain icon="plus" action={creating.open}>
              New key
            </ActionButton>
          )
        }
      />
      {can('admin') && <PageTabs of="API keys" shown="Keys" />}
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

/** `operator` is given at the shell alone. */
const SCOPES: { value: Scope; label: string; description: string }[] = [
  { value: 'read', label: 'read', description: 'Read records, runs and events' },
  { value: 'queue', label: 'queue', description: 'Run, cancel and repeat; push records' },
  { value: 'webhooks', label: 'webhooks', description: 'See and change webhooks and their deliveries' },
  { value: 'admin', label: 'admin', description: 'Everything of this team, keys and erasing included' },
];
const DAY_MS = 86_400_000;
const ENDS = [
  { value: '', label: 'Never' },
  { value: '7', label: 'In 7 days' },
  { value: '30', label: 'In 30 days' },
  { value: '90', label: 'In 90 days' },
  { value: '365', label: 'In a year' },
];

/** Makes a key: what it is called, what it may do, and until when. */
function CreateKey({
  isOpen,
  onClose,
  onMade,
}: {
  isOpen: boolean;
  onClose: () => void;
  onMade: (made: MadeKey) => void;
}) {
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>(['read', 'queue', 'webhooks']);
  const [days, setDays] = useState('');
  const make = useAction({
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
      <ActionForm action={make} verb="Make the key" isReady={scopes.length > 0} onBack={onClose}>
        <TextInput
          label="Name"
          description="Who or what will use it"
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

/** A key that was made: the only time that it is seen. */
function MadeKeyDialog({ made, onClose }: { made: MadeKey | undefined; onClose: () => void }) {
  return (
    <Modal
      opened={made !== undefined}
      onClose={onClose}
      title={`The key ${made?.key.name ?? ''}`}
      size="lg"
      closeOnClickOutside={false}
    >
      {made !== undefined && (
        <Stack gap="md">
          <Alert icon={<Icon name="warning" />} color="orange">
            Copy it now: it is stored only as a fingerprint, and never shown again.
          </Alert>
          <CommandLine command={made.apiKey} label="Copy the key" />
          <CommandLine
            command={`FLOWHOOK_URL=${serviceUrl}\nFLOWHOOK_KEY=${made.apiKey}`}
            label="Copy the lines for .env"
          />
          <Group justify="flex-end">
            <ActionButton isMain action={onClose}>
              I have copied it
            </ActionButton>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

/** How long a rotated key keeps working, so that its users can switch to the new one. */
const OVERLAP_SECONDS = 24 * 3_600;

/** @param props.isMine it is the key of the session, which ends with it */
function KeyActions({
  apiKey,
  isMine,
  onMade,
}: {
  apiKey: Key;
  isMine: boolean;
  onMade: (made: MadeKey) => void;
}) {
  const { id, name, scopes } = apiKey;
  const rotate = useAction({
    run: () => flowhook.keys.rotate(id, { overlapSeconds: OVERLAP_SECONDS }),
    changes: ['keys'],
    onDone: onMade,
  });
  const revoke = useAction({
    run: () => flowhook.keys.revoke(id, { self: isMine }),
    changes: ['keys', 'session'],
    done: () => `The key ${name} is revoked`,
  });
  // These are renewed and ended where they are made.
  if (scopes.includes('operator')) return <span>at the shell</span>;
  return (
    <Group gap="xs" wrap="nowrap">
      <ActionButton
        action={rotate}
        asks={{
          title: `Rotate ${name}?`,
          children:
            'A new key with the same scopes is made, and shown once. The old one works for another 24 hours.',
          verb: 'Rotate',
        }}
        aria-label={`Rotate ${name}`}
      >
        Rotate
      </ActionButton>
      <ActionButton
        action={revoke}
        asks={{
          title: `Revoke ${name}?`,
          children: isMine
            ? 'You are signed in with this key: the session ends at once, and you need another key to come back.'
            : 'It is refused from this moment on. This cannot be undone.',
          verb: 'Revoke',
        }}
        aria-label={`Revoke ${name}`}
      >
        Revoke
      </ActionButton>
    </Group>
  );
}
