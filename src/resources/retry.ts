/** Retries of deliveries to many webhooks, as the API returns them. */

import { DELIVERY_STATES } from '../model/delivery.ts';
import { boolean, choice, integer, list, named, nullable, object, text, time } from '../std/shape.ts';
import type { RetryOutcome } from '../webhooks/retry.ts';
import { replayFields, replayResource } from './delivery.ts';
import { ENDED, IDS, QUEUED, RECEIVER } from './examples.ts';

const count = (description?: string) => integer(description, { minimum: 0 });
const byState = object(
  { waiting: count(), delivered: count(), dead: count(), canceled: count() },
  'Number of events in each selected delivery state',
);

export const retryPlanResource = named(
  'RetryPlan',
  object({
    since: time('Start of the period, inclusive'),
    until: time('End of the period, inclusive. Repeat it in the request that starts the retry'),
    states: list(choice(DELIVERY_STATES), 'States of the selected deliveries'),
    count: count('Number of events that the retry would send'),
    byState,
    isComplete: boolean('`false` if 50,000 deliveries or more match: the counts are then lower bounds'),
    webhooks: list(
      object({
        webhookId: text(),
        name: nullable(text('Name of the webhook. `null` if it has none')),
        url: text(),
        count: count('Number of events that the webhook would receive'),
        byState,
        held: nullable(
          text('Reason why the webhook does not receive the events immediately. `null` if it does'),
        ),
      }),
      'Webhooks that would receive events',
    ),
  }),
  {
    since: QUEUED,
    until: ENDED,
    states: ['waiting', 'dead'],
    count: 12,
    byState: { waiting: 10, delivered: 0, dead: 2, canceled: 0 },
    isComplete: true,
    webhooks: [
      {
        webhookId: IDS.webhook,
        name: null,
        url: RECEIVER,
        count: 12,
        byState: { waiting: 10, delivered: 0, dead: 2, canceled: 0 },
        held: null,
      },
    ],
  },
);

const example = { ...replayResource.example, state: 'done' as const };

export const retryResource = named(
  'Retry',
  object({
    id: text(),
    state: choice(
      ['running', 'done'],
      '`running`: deliveries are still being queued; `done`: all are queued, and the counts say how many arrived',
    ),
    made: count('Number of deliveries queued so far: new ones, and waiting ones that became due immediately'),
    arrived: count('Successful deliveries'),
    underWay: count('Deliveries not attempted yet: queued, or held back with their webhook'),
    failed: count('Deliveries whose last attempt failed, whether or not they will be retried'),
    canceled: count('Deliveries canceled because the webhook was unsubscribed'),
    isComplete: boolean('`false` if the retry has 100,000 deliveries or more: not all are counted'),
    replays: list(replayResource, 'The replay of each webhook, with what its receiver returned'),
  }),
  {
    id: IDS.retry,
    state: 'done',
    made: 12,
    arrived: 9,
    underWay: 1,
    failed: 2,
    canceled: 0,
    isComplete: true,
    replays: [example],
  },
);

export function shownRetry(id: string, { state, made, total, webhooks }: RetryOutcome) {
  const replays = webhooks.map(({ replay, outcome }) => replayFields(replay, outcome));
  return retryResource.of({ id, state, made, ...total, replays });
}
