/** The signing secret of a webhook: reading and rotating it. */

import { toIso } from '../../std/clock.ts';
import { object, text } from '../../std/shape.ts';
import { DEFAULT_OVERLAP_HOURS, MAX_OVERLAP_HOURS, rotateSecret } from '../../webhooks/rotate.ts';
import { webhookSecret } from '../../webhooks/secret.ts';
import { bodyFields } from '../body.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { invalid } from '../values.ts';
import { webhookIdFrom } from './webhooks.ts';

const parameters = [pathParameter('webhookId', 'Webhook id')];
const secret = text('whsec_ and base64');

/** GET /v1/integrations/webhooks/{webhookId}/secret */
export const readWebhookSecret: Operation<KeyedCall> = {
  id: 'readWebhookSecret',
  group: 'Integrations',
  summary: 'Shows the secret that a receiver verifies the `v1` signature with',
  parameters,
  answer: jsonResponse('The secret', object({ secret })),
  refusals: { webhook_not_found: 'No webhook found' },

  async handle({ services, caller, params }) {
    const id = webhookIdFrom(params.webhookId);
    const plain = await webhookSecret(services.webhooks, { teamId: caller.teamId, id });
    return { secret: plain };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/rotate */
export const rotateWebhookSecret: Operation<KeyedCall> = {
  id: 'rotateWebhookSecret',
  group: 'Integrations',
  summary: 'Gives a webhook a new secret; the one before signs along for a while',
  description: 'Until `overlapUntil` every delivery carries a `v1` signature of each, the new one first.',
  parameters,
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        overlapHours: {
          type: 'number',
          minimum: 0,
          maximum: MAX_OVERLAP_HOURS,
          default: DEFAULT_OVERLAP_HOURS,
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('The new secret', object({ message: text(), secret, overlapUntil: text() })),
  refusals: { field_invalid: '`overlapHours` is not valid', webhook_not_found: 'No webhook found' },

  async handle(call) {
    const { services, caller, params } = call;
    const { overlapHours = DEFAULT_OVERLAP_HOURS } = await bodyFields(call);
    if (typeof overlapHours !== 'number' || !(overlapHours >= 0 && overlapHours <= MAX_OVERLAP_HOURS)) {
      invalid(`\`overlapHours\` must be a number from 0 to ${MAX_OVERLAP_HOURS}, or be left out`);
    }
    const id = webhookIdFrom(params.webhookId);
    const rotated = await rotateSecret(services.webhooks, { teamId: caller.teamId, id, overlapHours });
    return {
      message: 'New secret: give it to the receiver',
      secret: rotated.secret,
      overlapUntil: toIso(rotated.overlapUntil),
    };
  },
};
