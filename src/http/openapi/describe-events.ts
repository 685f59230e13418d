/** Events in the OpenAPI document: the requests that webhooks receive. */
import { EVENT_CATALOGUE } from '../../model/event-catalogue.ts';
import { eventSchemaName } from '../../resources/event.ts';
import { jsonBody } from './content.ts';

const HEADERS = {
  'webhook-id': 'The id of the event: the same in every attempt, to tell repetitions by',
  'webhook-timestamp': 'When this attempt was signed, in seconds since 1970',
  'webhook-signature':
    'Standard Webhooks 1.0: signatures with spaces between; `v1,` by the secret of the webhook (HMAC-SHA256), ' +
    '`v1a,` by the key of the team (ed25519) that stands at /.well-known/webhook-signing-keys/{teamId}',
};

/** The `webhooks` section: one request for each type of event. */
export function describeWebhooks(): object {
  return Object.fromEntries(
    EVENT_CATALOGUE.map(({ type, description, example }) => [
      type,
      {
        post: {
          operationId: `receive${eventSchemaName(type)}`,
          tags: ['Events'],
          summary: description,
          security: [],
          parameters: Object.entries(HEADERS).map(([name, text]) => ({
            name,
            in: 'header',
            required: true,
            description: text,
            schema: { type: 'string' },
          })),
          requestBody: jsonBody({ $ref: `#/components/schemas/${eventSchemaName(type)}` }, { example }),
          responses: {
            '2XX': { description: 'Received. Anything else is tried again, for some three days' },
            '4XX': { description: 'Tried again; 410 unsubscribes the webhook, 429 waits for `Retry-After`' },
          },
        },
      },
    ]),
  );
}
