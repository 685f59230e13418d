/** A delivery as a `curl` command. */
import { deliveryCommand } from '../../webhooks/curl.ts';
import { isoTime, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { deliveryIdFrom } from './deliveries.ts';

/** GET /v1/deliveries/{deliveryId}/curl */
export const readDeliveryCommand: Operation<KeyedCall> = {
  id: 'readDeliveryCommand',
  group: 'Integrations',
  summary:
    'A command that sends the event to the webhook once more, from wherever it is run, with a signature of now',
  description:
    'What it sends is not counted here as an attempt. The values of headers that the webhook has of its own, and of ' +
    'a password in its URL, are never shown: `***` stands there.',
  parameters: [pathParameter('deliveryId', 'Delivery id')],
  answer: jsonResponse('The command', {
    type: 'object',
    required: ['command', 'hidden', 'validUntil'],
    properties: {
      command: { type: 'string', description: 'For a POSIX shell' },
      hidden: {
        type: 'array',
        items: { type: 'string' },
        description: 'Headers whose values have to be put in the place of `***`',
      },
      validUntil: { ...isoTime, description: 'Until then receivers believe the signature' },
    },
    examples: [
      {
        command:
          "curl -sS -i --globoff -X POST 'https://example.com/hook' \\\n  -H 'content-type: application/json' \\\n" +
          "  -H 'webhook-id: evt_01kadz8v3s7v0s8e1c3q5m2n4p' \\\n  --data-binary '{}'",
        hidden: [],
        validUntil: '2026-11-21T02:05:00.000Z',
      },
    ],
  }),
  refusals: { delivery_not_found: 'No delivery found, or its webhook is gone' },

  async handle({ services: { webhooks }, caller: { teamId }, params, reply }) {
    const made = await deliveryCommand(webhooks, { teamId, id: deliveryIdFrom(params.deliveryId) });
    reply.header('cache-control', 'no-store');
    return made;
  },
};
