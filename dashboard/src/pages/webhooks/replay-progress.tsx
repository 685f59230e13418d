/** The progress of a replay, which runs in the service whether or not anybody watches, and what arrived of it. */
import { Alert, Group, List, Loader, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { Replay } from 'flowhook-client';
import { flowhook } from '../../client.ts';
import { Icon } from '../../parts/icon.tsx';
import { Prose } from '../../parts/prose.tsx';
import { count, many } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';
import { isOver, lookAgainMs } from './replay-looks.ts';

const replayQuery = (webhookId: string, replayId: string) =>
  queryOptions({
    queryKey: ['replays', 'one', replayId],
    queryFn: async ({ signal }) => {
      const startMs = performance.now();
      const replay = await flowhook.webhooks.readReplay(webhookId, replayId, { signal });
      return { replay, tookMs: performance.now() - startMs };
    },
    // An interval counts from the beginning of one reading to that of the next.
    refetchInterval: ({ state: { data, dataUpdateCount } }) =>
      lookAgainMs({ replay: data?.replay, tookMs: data?.tookMs ?? 0, looks: dataUpdateCount }),
  });

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
