/** Sends everything since a time once more that has not arrived, or what is in chosen states; says first how many. */
import { Alert, Button, Checkbox, Group, Loader, Modal, Select, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { DeliveryState, Replay, ReplayPlan, WebhookDetail } from 'flowhook-client';
import { type SubmitEvent, useState } from 'react';
import { flowhook } from '../../client.ts';
import { useAction } from '../../parts/action.tsx';
import { Icon } from '../../parts/icon.tsx';
import { count, many } from '../../parts/quantity.ts';
import { absolute } from '../../parts/times.ts';
import { replayPlanQuery } from '../../queries/webhooks.ts';
import { PERIODS, sinceOf } from '../runs/periods.ts';

const CUSTOM = 'custom';
const FAILING = 'failing';
const STATES: { value: DeliveryState; label: string; description: string }[] = [
  { value: 'waiting', label: 'waiting', description: 'Each is tried now, instead of at its next attempt' },
  { value: 'dead', label: 'given up', description: 'No attempt was answered with 2xx' },
  { value: 'canceled', label: 'canceled', description: 'They were never sent' },
  { value: 'delivered', label: 'delivered', description: 'The receiver lost what it had received' },
];
const NOT_ARRIVED: DeliveryState[] = ['waiting', 'dead'];

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
  const { id } = webhook;
  const failingSince = failingFrom(webhook);
  const [period, setPeriod] = useState(failingSince === null ? '24h' : FAILING);
  const [from, setFrom] = useState(() =>
    absolute(new Date().toISOString(), 'local').slice(0, 16).replace(' ', 'T'),
  );
  const [states, setStates] = useState<DeliveryState[]>(NOT_ARRIVED);
  const options = [
    ...(failingSince === null
      ? []
      : [{ value: FAILING, label: `Since it began to fail (after ${absolute(failingSince, 'local')})` }]),
    ...PERIODS.map(({ value, label }) => ({ value, label })),
    { value: CUSTOM, label: 'Since …' },
  ];
  const [openedMs] = useState(() => Date.now());
  const since = sinceWhen({ period, from, failingSince, nowMs: openedMs });
  const query = useQuery({
    ...replayPlanQuery(id, { since: since ?? '', states }),
    enabled: since !== undefined && states.length > 0,
    placeholderData: keepPreviousData,
  });
  const plan = since === undefined ? undefined : query.data;
  const isCounting = query.isFetching || query.isPlaceholderData;
  const replay = useAction({
    run: () => flowhook.webhooks.replaySince(id, { since: since ?? '', until: plan?.until ?? '', states }),
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
          Each is sent with the webhook-id that it has had: a receiver that remembers ids handles none twice.
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
        <Checkbox.Group
          label="In the state"
          value={states}
          onChange={(values) => setStates(values as DeliveryState[])}
        >
          <Stack gap="xs" mt="xs">
            {STATES.map(({ value, label, description }) => (
              <Checkbox
                key={value}
                value={value}
                label={plan === undefined ? label : `${label} (${numberOf(plan, value)})`}
                description={description}
              />
            ))}
          </Stack>
        </Checkbox.Group>
        {webhook.state === 'paused' && (
          <Alert color="orange" icon={<Icon name="pause" />} title="The webhook is paused">
            Nothing is sent until it is resumed.
          </Alert>
        )}
        {query.error !== null && <Alert color="red" title={query.error.message} />}
        <Group justify="flex-end">
          {isCounting && <Loader size="xs" aria-label="Counting" />}
          {!isCounting && plan?.count === 0 && states.length > 0 && (
            <Text size="sm" c="dimmed" role="status">
              {nothingWords(plan)}
            </Text>
          )}
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button
            type="submit"
            loading={replay.isActing}
            disabled={states.length === 0 || plan === undefined || isCounting || plan.count === 0}
          >
            {plan === undefined || plan.count === 0
              ? 'Replay'
              : `Replay ${plan.isComplete ? '' : 'at least '}${many(plan.count, 'event')}`}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Every attempt has failed at deliveries that were created since then; null while some succeed. */
function failingFrom({ failingSince, lastSuccessAt, createdAt }: WebhookDetail): string | null {
  if (failingSince === null) return null;
  // What failed first was created before it failed; the last success is known to a minute.
  return lastSuccessAt === null ? createdAt : new Date(Date.parse(lastSuccessAt) - 60_000).toISOString();
}

/** Undefined while no time is given. */
function sinceWhen(input: {
  period: string;
  from: string;
  failingSince: string | null;
  nowMs: number;
}): string | undefined {
  const { period, from, failingSince, nowMs } = input;
  if (period === FAILING && failingSince !== null) return failingSince;
  if (period !== CUSTOM) return sinceOf(period, nowMs);
  const time = new Date(from);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}

function numberOf({ byState, isComplete }: ReplayPlan, state: DeliveryState): string {
  return `${count(byState[state])}${isComplete || byState[state] === 0 ? '' : ' or more'}`;
}

function nothingWords({ byState }: ReplayPlan): string {
  const others = STATES.filter(({ value }) => byState[value] > 0);
  if (others.length === 0) return 'Nothing was created since then';
  return `Nothing to send: ${others.map(({ value, label }) => `${count(byState[value])} ${label}`).join(', ')}`;
}
