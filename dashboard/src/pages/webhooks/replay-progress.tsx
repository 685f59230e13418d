/** The progress of a replay, which runs in the service whether or not anybody watches. */
import { Alert, Group, Loader, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { flowhook } from '../../client.ts';
import { Icon } from '../../parts/icon.tsx';
import { many } from '../../parts/quantity.ts';
import { Time } from '../../parts/time.tsx';

const LOOK_MS = 1_000;

const replayQuery = (webhookId: string, replayId: string) =>
  queryOptions({
    queryKey: ['replays', 'one', replayId],
    queryFn: ({ signal }) => flowhook.webhooks.readReplay(webhookId, replayId, { signal }),
    refetchInterval: ({ state }) => (state.data?.state === 'done' ? false : LOOK_MS),
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
  const { data: replay, error } = useQuery(replayQuery(webhookId, replayId));
  const isDone = replay?.state === 'done';
  const made = many(replay?.made ?? 0, 'delivery');
  return (
    <Alert
      mb="sm"
      color={error === null ? (isDone ? 'green' : 'blue') : 'red'}
      icon={isDone ? <Icon name="check" /> : <Icon name="refresh" />}
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
      title={isDone ? 'The replay is done' : 'The replay is going on'}
      role="status"
    >
      <Group gap="xs">
        {!isDone && error === null && <Loader size={12} aria-hidden="true" />}
        <Text size="sm">
          {error === null
            ? replay !== undefined && (
                <>
                  {isDone && replay.made === 0 ? 'There was nothing to send' : `${made} sent again`}: those
                  that were{' '}
                  {replay.states.map((state) => (state === 'dead' ? 'given up' : state)).join(' or ')},
                  created since <Time at={replay.since} as="itself" />
                </>
              )
            : error.message}
        </Text>
      </Group>
    </Alert>
  );
}
