/** Queries for events and event types. */
import type { DeliveryState } from '../../../client/src/flowhook-client.ts';
import { flowhook } from '../client.ts';
import { ask, type FilterOf, filledPage, listQuery } from './list.ts';

export const eventList = (filter: FilterOf<typeof flowhook.events.history>) =>
  listQuery(
    ['events', 'list', filter],
    (cursor, signal) => filledPage(flowhook.events.history({ ...filter, signal }), cursor),
    { newestFirst: ({ id }) => id },
  );

export const eventQuery = (eventId: string) =>
  ask(['events', 'one', eventId], (signal) => flowhook.events.get(eventId, { signal }), {
    staleTime: 'static',
  });

export const eventTypesQuery = () =>
  ask(['events', 'types'], (signal) => flowhook.events.types({ signal }), {
    staleTime: 'static',
  });

export const eventDeliveriesQuery = (eventId: string) =>
  ask(['deliveries', 'of', eventId], (signal) => flowhook.events.deliveries(eventId, { signal }).take(100));

export const eventDeliveryList = (eventId: string) =>
  listQuery(['deliveries', 'list', 'of', eventId], (cursor, signal) =>
    flowhook.events.deliveries(eventId, { signal }).page(cursor),
  );

/**
 * Deliveries of an event, counted by state. The kind `usage` refetches it rarely, because a list shows many of these
 * counts.
 */
export const eventDeliveryCountsQuery = (eventId: string) =>
  ask(['usage', 'counts', eventId], async (signal) => {
    const counts: Partial<Record<DeliveryState, number>> = {};
    for (const { state } of await flowhook.events.deliveries(eventId, { signal }).take(100)) {
      counts[state] = (counts[state] ?? 0) + 1;
    }
    return counts;
  });
