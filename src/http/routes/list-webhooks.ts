/** GET /v1/integrations/webhooks/list: all webhooks of the caller's team. */
import { webhookResource } from '../../resources/webhook.ts';
import { exactly, list, object } from '../../std/shape.ts';
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
  answer: jsonResponse('The webhooks, oldest first', exactly(object({ webhooks: list(webhookResource) }))),
  refusals: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { services, caller } = call;
    const whose = { teamId: caller.teamId, ...(await workflowFilter(call)) };
    const all = await Array.fromAsync(everyRowInTurn(services.store.webhooks.list, whose));
    // The order of ids is another one if a clock was set back.
    return {
      webhooks: all
        .sort((one, other) => one.createdAt - other.createdAt)
        .map((one) => webhookResource.of(one)),
    };
  },
};
