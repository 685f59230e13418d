/** Makes a key: what it is called, what it may do, and until when. */
import { Button, Checkbox, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import type { MadeKey, Scope } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';

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

export function CreateKey({
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
  const { act, isActing } = useAction({
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
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    act();
  };
  return (
    <Modal opened={isOpen} onClose={onClose} title="New key">
      <form onSubmit={submit}>
        <Stack gap="md">
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
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Back
            </Button>
            <Button type="submit" loading={isActing} disabled={scopes.length === 0}>
              Make the key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
