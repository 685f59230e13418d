/** The catalogue of event types, and samples of them. */

import { Problem } from '../../model/error.ts';
import { aliasesOf, canonicalEvent, EVENT_TYPES, eventNameMistake } from '../../model/event.ts';
import { EVENT_CATALOGUE } from '../../model/event-catalogue.ts';
import { eventResource } from '../../resources/event.ts';
import { anyObject, choice, list, object, raw, text } from '../../std/shape.ts';
import { jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

/** GET /v1/events/types */
export const listEventTypes: Operation<KeyedCall> = {
  id: 'listEventTypes',
  group: 'Events',
  summary: 'Every type of event: its names, what it tells, the JSON Schema of its body, and an example',
  answer: jsonResponse(
    'The types',
    object({
      types: list(
        object({
          type: choice(EVENT_TYPES),
          aliases: list(
            text(),
            'Other names that a subscription may use, in any letter case. `*` is all types',
          ),
          description: text(),
          schema: anyObject('JSON Schema 2020-12 of the whole body'),
          example: eventResource,
        }),
      ),
    }),
  ),

  async handle() {
    return { types: EVENT_CATALOGUE.map((kind) => ({ ...kind, aliases: aliasesOf(kind.type) })) };
  },
};

/** GET /v1/samples/{eventType} */
export const readSample: Operation<KeyedCall> = {
  id: 'readSample',
  group: 'Events',
  summary: 'A sample of an event, as a list of one: the last of the team, else a typical one',
  description:
    'For products that want to see an event before there is a subscription. Of the last 1,000 events of the team the ' +
    'newest of this type is taken.',
  parameters: [pathParameter('eventType', 'A type of event, or another name of one')],
  answer: jsonResponse(
    'The sample',
    raw({ type: 'array', minItems: 1, maxItems: 1, items: eventResource.schema }),
    { 'x-sample': '`real`, or `typical` when there is none' },
  ),
  refusals: { event_type_not_found: 'No such type of event' },

  async handle({ services, caller: { teamId }, params, reply }) {
    const type = params.eventType === undefined ? undefined : canonicalEvent(params.eventType);
    const typical = EVENT_CATALOGUE.find((kind) => kind.type === type);
    if (typical === undefined) {
      const mistake = params.eventType && eventNameMistake(params.eventType);
      throw new Problem('event_type_not_found', mistake?.endsWith('?') ? { sentence: mistake } : {});
    }
    const last = await services.store.events.newestOfType({ teamId, type: typical.type });
    reply.header('x-sample', last === undefined ? 'typical' : 'real');
    if (last === undefined) return [{ ...typical.example, teamId }];
    return reply.type('application/json; charset=utf-8').send(`[${last.body}]`);
  },
};
