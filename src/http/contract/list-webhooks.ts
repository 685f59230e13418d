/** GET /v1/integrations/webhooks/list: all webhooks of the caller's team. */
import type { Webhook } from '../../model/webhook.ts';
import { toIso } from '../../std/clock.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { jsonResponse } from '../schemas.ts';
import { workflowFilter } from '../workflow-filter.ts';

export const listWebhooks: Operation<KeyedCall> = {
  id: 'listWebhooks',
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
    const whose = { teamId: call.caller.teamId, ...(await workflowFilter(call)) };
    return { webhooks: (await call.services.store.webhooks.list(whose)).map(listed) };
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
