/** Events in order, for receivers that catch up; and one event. */

import { Problem } from '../../model/error.ts';
import { eventResource } from '../../resources/event.ts';
import { integer, list, object } from '../../std/shape.ts';
import type { StoredEvent } from '../../store/operations/events.ts';
import { sendWithETag } from '../caching.ts';
import { nextLink } from '../cursor.ts';
import { disconnectSignal } from '../disconnect.ts';
import { isGeneratedId } from '../ids.ts';
import { jsonResponse } from '../openapi/content.ts';
import { queryNumber, queryValue } from '../query.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { invalid } from '../values.ts';

const DEFAULT_LIMIT = 100;
/** Events are of 20 kB at most: an answer stays under 5 MB. */
const MAX_LIMIT = 250;
const MAX_WAIT_S = 25;

/** GET /v1/events */
export const listEvents: Operation<KeyedCall> = {
  id: 'listEvents',
  weight: 'long',
  group: 'Events',
  summary: 'The events of a team after a sequence, in order, with the bodies that webhooks are sent',
  description:
    'A receiver that was away catches up: `next` is the `after` of the next call. With `wait` the answer is held ' +
    'until there is an event, or the time is over.',
  parameters: [
    {
      name: 'after',
      in: 'query',
      description:
        'The `sequence` of the last event that is known; 0: from the beginning; `now`: only new ones',
      // A string: generated clients of some languages cannot express a parameter of two types.
      schema: { type: 'string', pattern: '^(now|\\d{1,15})$', default: '0' },
    },
    {
      name: 'limit',
      in: 'query',
      description: `At most so many, ${DEFAULT_LIMIT} by default`,
      schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT },
    },
    {
      name: 'wait',
      in: 'query',
      description: 'Seconds to wait for one',
      schema: { type: 'integer', minimum: 0, maximum: MAX_WAIT_S },
    },
  ],
  answer: jsonResponse(
    'The events',
    object({ events: list(eventResource), next: integer('The `after` of the next call') }),
    { Link: 'With `rel="next"`, when `limit` was reached' },
  ),
  refusals: {
    field_invalid: 'A parameter has a bad value',
    overloaded: { description: 'Too many calls wait', headers: { 'retry-after': 'Seconds' } },
  },

  async handle(call) {
    const { services, caller, query, reply } = call;
    const { teamId } = caller;
    const { events } = services.store;
    const isNow = queryValue(query, 'after') === 'now';
    const asked = isNow ? undefined : afterFrom(query);
    const limit = queryNumber(query, 'limit', { least: 1, most: MAX_LIMIT }) ?? DEFAULT_LIMIT;
    const waitMs = (queryNumber(query, 'wait', { least: 0, most: MAX_WAIT_S }) ?? 0) * 1_000;
    const after = asked ?? (isNow ? await events.newestSequence({ teamId }) : 0);
    let found = await events.list({ teamId, afterSequence: after, limit });
    if (found.length === 0 && waitMs > 0) {
      const long = services.longCalls.follow(caller);
      try {
        const signal = AbortSignal.any([disconnectSignal(call), long.signal]);
        await services.eventWaits.until({ teamId, after, ms: waitMs, signal });
        found = await events.list({ teamId, afterSequence: after, limit });
        await long.confirm();
      } finally {
        long.end();
      }
    }
    const next = found.at(-1)?.sequence ?? after;
    if (found.length === limit) {
      reply.header('link', nextLink('/v1/events', query, String(next), 'after'));
    }
    // The bodies exactly as stored: parsing would change numbers that a double cannot hold.
    const bodies = found.map(({ body }) => body).join(',');
    reply.type('application/json; charset=utf-8');
    return reply.send(`{"events":[${bodies}],"next":${next}}`);
  },
};

/** GET /v1/events/{eventId} */
export const readEvent: Operation<KeyedCall> = {
  id: 'readEvent',
  group: 'Events',
  tagged: true,
  summary: 'Shows one event, exactly as webhooks are sent it',
  parameters: [pathParameter('eventId', 'Event id')],
  answer: jsonResponse('The event', eventResource),
  refusals: { event_not_found: 'No event found' },

  async handle(call) {
    return sendWithETag(call, (await eventOf(call)).body);
  },
};

/** The event that the path names. @throws Problem `event_not_found` */
export async function eventOf({ services, caller, params }: KeyedCall): Promise<StoredEvent> {
  const id = params.eventId;
  const event = isGeneratedId('evt', id)
    ? await services.store.events.get({ teamId: caller.teamId, id })
    : undefined;
  if (event === undefined) throw new Problem('event_not_found');
  return event;
}

function afterFrom(query: string): number | undefined {
  try {
    return queryNumber(query, 'after', { least: 0 });
  } catch {
    return invalid(
      'The query parameter `after` must be the `sequence` of an event, or `now`, or be left out',
    );
  }
}
