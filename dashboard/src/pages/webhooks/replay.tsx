/** Sends everything since a time once more that has not arrived, or what is in chosen states; says first how many. */
import { Alert, Checkbox, Group, List, Loader, Modal, Select, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { DeliveryState, Replay, ReplayPlan, WebhookDetail } from 'flowhook-client';
import { useState } from 'react';
import { flowhook } from '../../client.ts';
import { ActionForm, useAction } from '../../parts/action.tsx';
import { PERIODS, sinceOf } from '../../parts/filters.ts';
import { absolute, count, many } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Prose, Time } from '../../parts/values.tsx';
import { ask } from '../../queries/list.ts';
import { replayPlanQuery } from '../../queries/webhooks.ts';
import { isOver, lookAgainMs } from './health.ts';

const CUSTOM = 'custom';
const FAILING = 'failing';
const STATES: { value: DeliveryState; label: string; description: string }[] = [
  { value: 'waiting', label: 'waiting', description: 'Each is tried now, instead of at its next attempt' },
  { value: 'dead', label: 'given up', description: 'No attempt was answered with 2xx' },
  { value: 'canceled', label: 'canceled', description: 'They were never sent' },
  { value: 'delivered', label: 'delivered', description: 'The receiver lost what it had received' },
];
const NOT_ARRIVED: DeliveryState[] = ['waiting', 'dead'];

interface ReplayDialogProps {
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
    </ActionForm>
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

const replayQuery = (webhookId: string, replayId: string) =>
  ask(
    ['replays', 'one', replayId],
    async (signal) => {
      const startMs = performance.now();
      const replay = await flowhook.webhooks.readReplay(webhookId, replayId, { signal });
      return { replay, tookMs: performance.now() - startMs };
    },
    {
      // An interval counts from the beginning of one reading to that of the next.
      refetchInterval: ({ state: { data, dataUpdateCount } }) =>
        lookAgainMs({ replay: data?.replay, tookMs: data?.tookMs ?? 0, looks: dataUpdateCount }),
    },
  );

/** The progress of a replay, which runs in the service whether or not anybody watches, and what arrived of it. */
export function ReplayProgress({
  webhookId,
  replayId,
  onClose,
}: {
  webhookId: string;
  replayId: string;
  onClose: () => void;
}) {
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

/** Green only if everything has arrived. */
function looksOf(
  replay: Replay | undefined,
  error: Error | null,
): { color: string; icon: 'check' | 'refresh' | 'warning'; title: string } {
  if (error !== null) return { color: 'red', icon: 'warning', title: 'The replay cannot be read' };
  if (replay === undefined || !isOver(replay)) {
    return { color: 'blue', icon: 'refresh', title: 'The replay is going on' };
  }
  const { arrived, failed } = replay.outcome;
  if (replay.made === 0) return { color: 'gray', icon: 'warning', title: 'There was nothing to send' };
  if (failed > 0) {
    return { color: 'red', icon: 'warning', title: `${many(failed, 'delivery')} failed again` };
  }
  if (arrived < replay.made) return { color: 'orange', icon: 'warning', title: 'Not all have arrived' };
  return { color: 'green', icon: 'check', title: `All ${count(arrived)} have arrived` };
}

function Outcome({ replay }: { replay: Replay }) {
  const { made, states, since, until, outcome } = replay;
  const { arrived, failed, underWay, canceled, superseded, failures } = outcome;
  const parts = (
    [
      [arrived, 'arrived'],
      [failed, 'failed'],
      [underWay, 'under way'],
      [canceled, 'canceled'],
      [superseded, 'sent again by a later replay'],
    ] as const
  ).flatMap(([number, what]) => (number === 0 ? [] : [`${count(number)} ${what}`]));
  return (
    <>
      <Group gap="xs">
        {!isOver(replay) && <Loader size={12} aria-hidden="true" />}
        <Text size="sm">
          {made > 0 && `${many(made, 'event')} sent again: ${parts.join(', ')}. `}
          Selected were those that were{' '}
          {states.map((state) => (state === 'dead' ? 'given up' : state)).join(' or ')}, created between{' '}
          <Time at={since} as="itself" /> and <Time at={until} as="itself" />.
        </Text>
      </Group>
      {failures.length > 0 && (
        <List size="sm" mt="xs">
          {failures.map(({ status, message, count: times, retried }) => (
            <List.Item key={`${status} ${message}`} style={{ overflowWrap: 'anywhere' }}>
              {count(times)} × <Prose text={message} />
              {retried > 0 && ` (${retried === times ? 'tried' : `${count(retried)} tried`} again later)`}
            </List.Item>
          ))}
        </List>
      )}
    </>
  );
}
