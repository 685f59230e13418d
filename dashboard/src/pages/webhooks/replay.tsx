/** Resends deliveries of a period in selected states, after showing how many there are. */
import { Alert, Checkbox, Group, List, Loader, Modal, Select, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  DeliveryState,
  Replay,
  ReplayPlan,
  WebhookDetail,
} from '../../../../client/src/flowhook-client.ts';
import { flowhook } from '../../client.ts';
import { ActionForm, useAction } from '../../parts/action.tsx';
import { PERIODS, sinceOf } from '../../parts/filters.ts';
import { absolute, count, many, uncapitalized } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { stateName } from '../../parts/state-badge.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { ask } from '../../queries/list.ts';
import { replayPlanQuery } from '../../queries/webhooks.ts';
import { isOver, pollAfterMs } from './health.ts';

const CUSTOM = 'custom';
const FAILING = 'failing';
const STATES: { value: DeliveryState; label: string; description: string }[] = [
  { value: 'waiting', label: 'Waiting', description: 'Sent now instead of at the next scheduled attempt' },
  { value: 'dead', label: 'Given up', description: 'No attempt got a 2xx response' },
  {
    value: 'canceled',
    label: 'Canceled',
    description: 'The webhook was unsubscribed before they were delivered',
  },
  { value: 'delivered', label: 'Delivered', description: 'If the receiver lost what it received' },
];
const NOT_ARRIVED: DeliveryState[] = ['waiting', 'dead'];

interface ReplayDialogProps {
  webhook: WebhookDetail;
  isOpen: boolean;
  onClose: () => void;
  onStarted: (replay: Replay) => void;
}

export function ReplayDialog(props: ReplayDialogProps) {
  return (
    <Modal opened={props.isOpen} onClose={props.onClose} title="Replay deliveries">
      {props.isOpen && <Form {...props} />}
    </Modal>
  );
}

function Form({ webhook, onClose, onStarted }: ReplayDialogProps) {
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
      : [{ value: FAILING, label: `Since it started failing (${absolute(failingSince, 'local')})` }]),
    ...PERIODS.map(({ value, label }) => ({ value, label })),
    { value: CUSTOM, label: 'Custom start' },
  ];
  const [openedMs] = useState(() => Date.now());
  const since = sinceWhen({ period, from, failingSince, nowMs: openedMs });
  const query = useQuery({
    ...replayPlanQuery(id, { since: since ?? '', states }),
    enabled: since !== undefined && states.length > 0,
    placeholderData: keepPreviousData,
  });
  const plan = since === undefined ? undefined : query.data;
  // Not while the same selection is counted again, as after each attempt: a button that is disabled between the press and the
  // release of a key or the mouse ignores the click.
  const isCounting = query.isLoading || query.isPlaceholderData;
  const replay = useAction({
    run: () => flowhook.webhooks.replaySince(id, { since: since ?? '', until: plan?.until ?? '', states }),
    changes: ['deliveries'],
    onDone: (made) => {
      onClose();
      onStarted(made);
    },
  });
  return (
    <ActionForm
      action={replay}
      verb={
        plan === undefined || plan.count === 0
          ? 'Replay'
          : `Replay ${plan.isComplete ? '' : 'at least '}${many(plan.count, 'event')}`
      }
      isReady={states.length > 0 && plan !== undefined && !isCounting && plan.count > 0}
      onBack={onClose}
      beside={
        <>
          {isCounting && <Loader size="xs" aria-label="Counting" />}
          {!isCounting && plan?.count === 0 && states.length > 0 && (
            <Text size="sm" c="dimmed" role="status">
              {nothingWords(plan)}
            </Text>
          )}
        </>
      }
    >
      <Text size="sm">
        Each event keeps its webhook-id, so a receiver that remembers ids processes no event twice.
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
          label="Start"
          description="In your time zone"
          value={from}
          onChange={({ currentTarget }) => setFrom(currentTarget.value)}
          required
        />
      )}
      <Checkbox.Group
        label="State"
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
          Nothing is sent until you resume it.
        </Alert>
      )}
      {query.error !== null && <Alert color="red" title={query.error.message} />}
    </ActionForm>
  );
}

/** A time before the creation of the first failed delivery; null if the webhook is not failing. */
function failingFrom({ failingSince, lastSuccessAt, createdAt }: WebhookDetail): string | null {
  if (failingSince === null) return null;
  // A delivery is created before it fails. The time of the last success is accurate to a minute.
  return lastSuccessAt === null ? createdAt : new Date(Date.parse(lastSuccessAt) - 60_000).toISOString();
}

/** Undefined while no valid time is entered. */
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
  if (others.length === 0) return 'No deliveries in this period';
  const counts = others.map(({ value, label }) => `${count(byState[value])} ${uncapitalized(label)}`);
  return `Not selected: ${counts.join(', ')}`;
}

const replayQuery = (webhookId: string, replayId: string) =>
  ask(
    ['replays', 'one', replayId],
    async (signal) => {
      const startMs = performance.now();
      const replay = await flowhook.webhooks.readReplay(webhookId, replayId, { signal });
      return { replay, tookMs: performance.now() - startMs };
    },
    {
      // An interval runs from the start of one poll to the start of the next.
      refetchInterval: ({ state: { data, dataUpdateCount } }) =>
        pollAfterMs({ replay: data?.replay, tookMs: data?.tookMs ?? 0, polls: dataUpdateCount }),
    },
  );

/** The progress and the result of a replay, which runs in the service even if nobody watches it. */
export function ReplayProgress(props: { webhookId: string; replayId: string; onClose: () => void }) {
  const { webhookId, replayId, onClose } = props;
  const { data, error } = useQuery(replayQuery(webhookId, replayId));
  const replay = data?.replay;
  const { color, icon, title } = looksOf(replay, error);
  return (
    <Alert
      mb="sm"
      color={color}
      icon={<Icon name={icon} />}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
      title={title}
      role="status"
    >
      {error !== null && <Text size="sm">{error.message}</Text>}
      {error === null && replay !== undefined && <Outcome replay={replay} />}
    </Alert>
  );
}

/** Green only if every event was delivered. */
function looksOf(
  replay: Replay | undefined,
  error: Error | null,
): { color: string; icon: 'check' | 'refresh' | 'warning'; title: string } {
  if (error !== null) return { color: 'red', icon: 'warning', title: 'The replay could not be loaded' };
  if (replay === undefined || !isOver(replay)) {
    return { color: 'blue', icon: 'refresh', title: 'Replay in progress' };
  }
  const { arrived, failed } = replay.outcome;
  if (replay.made === 0) return { color: 'gray', icon: 'warning', title: 'Nothing to replay' };
  if (failed > 0) {
    return { color: 'red', icon: 'warning', title: `${many(failed, 'delivery')} failed again` };
  }
  if (arrived < replay.made)
    return {
      color: 'orange',
      icon: 'warning',
      title: `${many(replay.made - arrived, 'delivery')} did not arrive`,
    };
  return { color: 'green', icon: 'check', title: `${many(arrived, 'delivery')} arrived` };
}

function Outcome({ replay }: { replay: Replay }) {
  const { made, states, since, until, outcome } = replay;
  const { arrived, failed, underWay, canceled, superseded, failures } = outcome;
  const parts = (
    [
      [arrived, 'delivered'],
      [failed, 'failed'],
      [underWay, 'in progress'],
      [canceled, 'canceled'],
      [superseded, 'resent by a later replay'],
    ] as const
  ).flatMap(([number, what]) => (number === 0 ? [] : [`${count(number)} ${what}`]));
  return (
    <>
      <Group gap="xs">
        {!isOver(replay) && <Loader size={12} aria-hidden="true" />}
        <Text size="sm">
          {made > 0 && `${many(made, 'event')} resent: ${parts.join(', ')}. `}
          Selection: {states.map((state) => uncapitalized(stateName(state))).join(' or ')}, created between{' '}
          <Time at={since} as="itself" /> and <Time at={until} as="itself" />.
        </Text>
      </Group>
      {failures.length > 0 && (
        <List size="sm" mt="xs">
          {failures.map(({ status, message, count: times, retried }) => (
            <List.Item key={`${status} ${message}`} style={{ overflowWrap: 'anywhere' }}>
              {count(times)} × <Prose text={message} />
              {retried > 0 && ` (${retried === times ? '' : `${count(retried)} `}to be retried)`}
            </List.Item>
          ))}
        </List>
      )}
    </>
  );
}
