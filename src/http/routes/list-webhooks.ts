/** GET /v1/integrations/webhooks/list: all webhooks of the caller's team. */
import type { Webhook } from '../../model/webhook.ts';
import { toIso } from '../../std/clock.ts';
import { isoTime } from '../../std/shape.ts';
import { everyRowInTurn } from '../list-page.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { workflowFilter } from '../workflow-filter.ts';

export const listWebhooks: Operation<KeyedCall> = {
  id: 'listWebhooks',
  frozen: true,
  group: 'Integrations',
  summary: 'Shows all webhooks of a team',
  parameters: [
    {
      name: 'workflowId',
      in: 'query',
      description: 'Only the webhooks of this workflow',
      schema: { type: 'string', minLength: 1 },
    },
  ],
  answer: jsonResponse('The webhooks, oldest first', {
    type: 'object',
    required: ['webhooks'],
    properties: { webhooks: { type: 'array', items: { $ref: '#/components/schemas/Webhook' } } },
    additionalProperties: false,
  }),
  refusals: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { services, caller } = call;
    const whose = { teamId: caller.teamId, ...(await workflowFilter(call)) };
    const all = await Array.fromAsync(everyRowInTurn(services.store.webhooks.list, whose));
    // The order of ids is another one if a clock was set back.
    return { webhooks: all.sort((one, other) => one.createdAt - other.createdAt).map(listed) };
  },
};

/** Exactly the four keys of the contract. */
function listed(webhook: Webhook): object {
  return {
    id: webhook.id,
    createdAt: toIso(webhook.createdAt),
    url: webhook.url,
    events: webhook.events,
  };
}

/** The same as JSON Schema. */
export const webhookSchema = {
  type: 'object',
  required: ['id', 'createdAt', 'url', 'events'],
  properties: {
    id: { type: 'string', description: 'Webhook identifier' },
    // The contract states no format.
    createdAt: { type: 'string', description: isoTime.description },
    url: { type: 'string', description: 'Callback URL' },
    events: { type: 'array', items: { type: 'string' }, description: 'The events subscribed to' },
  },
  examples: [
    {
      id: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p',
      createdAt: '2026-11-21T02:00:00.000Z',
      url: 'https://example.com/hooks/people',
      events: ['workflow_finished', 'workflow_data_change'],
    },
  ],
  additionalProperties: false,
};
