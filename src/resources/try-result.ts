/** What a rule would have sent, as the API returns it. */
import { mediaTypeOf } from '../model/delivery.ts';
import { boolean, integer, list, map, nullable, object, text, withExample } from '../std/shape.ts';
import type { Tried } from '../webhooks/rules/rule-reading.ts';
import { ENDED, IDS } from './examples.ts';

export const tryResultResource = withExample(
  object({
    tried: list(
      object({
        eventId: text(),
        type: text('Type of the event'),
        timestamp: text('Time of the event, in ISO 8601'),
        sent: boolean('`true` if the webhook would have been called'),
        cooldownEnded: boolean('`true` for a message that is sent because cooldowns of records ended'),
        matched: nullable(integer('Number of differences that match. `null` if the rule reads no records')),
        examined: nullable(
          integer('Number of differences of the event. `null` if the rule reads no records'),
        ),
        headers: nullable(map(text(), 'Headers that depend on the rule. `null` if nothing is sent')),
        body: nullable(
          text(
            'Body that would have been sent, to the byte, or what an open digest contains. `null` if nothing is sent',
          ),
        ),
        reason: nullable(text('Human-readable reason why nothing is sent. `null` if the event is sent')),
        mistake: nullable(
          object(
            { recordId: nullable(text('ID of the record. `null` if no record was read')), message: text() },
            'First mistake while the filter or the template was evaluated. `null` if there was none',
          ),
        ),
      }),
      'Events, newest last',
    ),
    mistake: nullable(
      object(
        {
          field: text('Field of the request'),
          message: text('Description of the mistake, and what to write instead'),
          from: nullable(integer('Start of the mistake: number of characters before it. `null` if unknown')),
          to: nullable(integer('End of the mistake: number of characters before its end. `null` if unknown')),
        },
        'First mistake in the rule; `tried` is empty then. `null` if the rule is valid',
      ),
    ),
  }),
  {
    tried: [
      {
        eventId: IDS.event,
        type: 'workflow_data_change',
        timestamp: ENDED,
        sent: false,
        cooldownEnded: false,
        matched: 0,
        examined: 12,
        headers: null,
        body: null,
        reason: '0 of 12 differences match',
        mistake: null,
      },
    ],
    mistake: null,
  },
);

export function shownTried(tried: Tried) {
  const { body } = tried;
  return { ...tried, headers: body === null ? null : { 'content-type': mediaTypeOf(body) } };
}
