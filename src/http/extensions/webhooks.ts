/** Webhooks beyond the contract: one at a time, and what it signs with. */
import { Problem } from '../../model/error.ts';
import { toIso } from '../../std/clock.ts';
import { webhookSecret } from '../../webhooks/secret.ts';
import { isGeneratedId } from '../ids.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { jsonResponse } from '../schemas.ts';

const parameters = [pathParameter('webhookId', 'Webhook id')];

/** GET /v1/integrations/webhooks/{webhookId} */
export const readWebhook: Operation<KeyedCall> = {
  id: 'readWebhook',
  group: 'Integrations',
  summary: 'Shows one webhook',
  parameters,
  answer: jsonResponse('The webhook', 'WebhookDetail'),
  refusals: { webhook_not_found: 'No webhook found' },

  async handle({ services, caller, params }) {
    const id = webhookIdFrom(params.webhookId);
    const webhook = await services.store.webhooks.get({ teamId: caller.teamId, id });
    if (webhook === undefined) throw new Problem('webhook_not_found');
    return {
      id: webhook.id,
      workflowId: webhook.workflowId,
      createdAt: toIso(webhook.createdAt),
      url: webhook.url,
      events: webhook.events,
      state: webhook.state,
    };
  },
};

/** GET /v1/integrations/webhooks/{webhookId}/secret */
export const readWebhookSecret: Operation<KeyedCall> = {
  id: 'readWebhookSecret',
  group: 'Integrations',
  summary: 'Shows the secret that a receiver verifies the `v1` signature with',
  parameters,
  answer: jsonResponse('The secret', {
    type: 'object',
    required: ['secret'],
    properties: { secret: { type: 'string', description: 'whsec_ and base64' } },
  }),
  refusals: { webhook_not_found: 'No webhook found' },

  async handle({ services, caller, params, reply }) {
    const id = webhookIdFrom(params.webhookId);
    const secret = await webhookSecret(services.webhooks, { teamId: caller.teamId, id });
    reply.header('cache-control', 'no-store');
    return { secret };
  },
};

function webhookIdFrom(text: string | undefined): string {
  if (!isGeneratedId('wh', text)) throw new Problem('webhook_not_found');
  return text;
}
