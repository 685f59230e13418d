/** Sends all of some states since a time once more. */
import { Button, Checkbox, Group, Modal, Select, Stack, Text, TextInput } from '@mantine/core';
import type { DeliveryState, Replay, WebhookDetail } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { absolute } from '../../parts/times.ts';
import { PERIODS, sinceOf } from '../runs/periods.ts';

const CUSTOM = 'custom';
const FAILING = 'failing';
const STATES = [
  { value: 'dead', label: 'given up', description: 'No attempt was answered with 2xx' },
  {
    value: 'canceled',
    label: 'canceled',
    description: 'They were never sent',
  },
  { value: 'delivered', label: 'delivered', description: 'The receiver lost what it had received' },
  { value: 'waiting', label: 'waiting', description: 'They are retried anyway; this sends each once more' },
];

export interface ReplayDialogProps {
  webhook: WebhookDetail;
  isOpen: boolean;
  onClose: () => void;
  onBegun: (replay: Replay) => void;
}

export function ReplayDialog(props: ReplayDialogProps) {
  return (
    <Modal opened={props.isOpen} onClose={props.onClose} title="Replay deliveries since a time">
      {props.isOpen && <Form {...props} />}
    </Modal>
  );
}

function Form({ webhook, onClose, onBegun }: ReplayDialogProps) {
  const { id, failingSince } = webhook;
  const [period, setPeriod] = useState(failingSince === null ? '24h' : FAILING);
  const [from, setFrom] = useState(() =>
    absolute(new Date().toISOString(), 'local').slice(0, 16).replace(' ', 'T'),
  );
  const [states, setStates] = useState<string[]>(['dead']);
  const options = [
    ...(failingSince === null
      ? []
      : [{ value: FAILING, label: `Since it began to fail (${absolute(failingSince, 'local')})` }]),
    ...PERIODS.map(({ value, label }) => ({ value, label })),
    { value: CUSTOM, label: 'Since …' },
  ];
  const since = () => {
    if (period === CUSTOM) return new Date(from).toISOString();
    if (period === FAILING && failingSince !== null) return failingSince;
    return sinceOf(period, Date.now()) ?? '';
  };
  const replay = useAction({
    run: () => flowhook.webhooks.replaySince(id, { since: since(), states: states as DeliveryState[] }),
    changes: ['deliveries'],
    onDone: (made) => {
      onClose();
      onBegun(made);
    },
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    replay.act();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm">
          Each becomes a new delivery of the same event, with the same webhook-id: a receiver that remembers
          ids handles none twice.
        </Text>
        <Select
          label="Created"
          data={options}
          value={period}
          onChange={(value) => setPeriod(value ?? '24h')}
          allowDeselect={false}
        />
        {period === CUSTOM && (
          <TextInput
            type="datetime-local"
            label="Since"
            description="In your own time zone"
            value={from}
            onChange={({ currentTarget }) => setFrom(currentTarget.value)}
            required
          />
        )}
        <Checkbox.Group label="In the state" value={states} onChange={setStates}>
          <Stack gap="xs" mt="xs">
            {STATES.map((state) => (
              <Checkbox key={state.value} {...state} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button
            type="submit"
            loading={replay.isActing}
            disabled={states.length === 0 || (period === CUSTOM && from === '')}
          >
            Replay
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
