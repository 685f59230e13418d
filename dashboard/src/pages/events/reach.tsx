/** How many deliveries of an event are in each state. */
import { Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { DeliveryState } from 'flowhook-client';
import { StateBadge } from '../../parts/state-badge.tsx';
import { eventReachQuery } from '../../queries/events.ts';

const WORDS: Record<DeliveryState, string> = {
  delivered: 'delivered',
  waiting: 'waiting',
  dead: 'given up',
  canceled: 'canceled',
};

export function Reach({ eventId }: { eventId: string }) {
  const { data: reach } = useQuery(eventReachQuery(eventId));
  if (reach === undefined) return null;
  const states = (Object.keys(WORDS) as DeliveryState[]).filter((state) => reach[state] !== undefined);
  if (states.length === 0) {
    return (
      <Text span inherit c="dimmed">
        none
      </Text>
    );
  }
  return (
    <Group gap="sm" wrap="nowrap" className="numbers" h="1.5em">
      {states.map((state) => (
        <span key={state} title={`${reach[state]} ${WORDS[state]}`}>
          <StateBadge state={state} label={String(reach[state])} />
          <span className="visually-hidden"> {WORDS[state]}</span>
        </span>
      ))}
    </Group>
  );
}
