/**
 * DELETE /v1/integrations/webhooks/unsubscribe: unsubscribes an existing webhook.
 *
 * The contract does not say where `webhookId` is sent, so the path, the query and the body are all accepted.
 */

import type { IncomingMessage } from 'node:http';
import { Problem } from '../../model/error.ts';
import { messageResource } from '../../resources/error.ts';
import { readBody } from '../body.ts';
import { isGeneratedId } from '../ids.ts';
import { everyRowInTurn } from '../list-page.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { queryValue, queryValues } from '../query.ts';
import { type KeyedCall, type Operation, type Parameter, pathParameter } from '../route.ts';

const THREE_WAYS =
  'Name one webhook: as the last segment of the path (…/unsubscribe/{webhookId}), ' +
  'as ?webhookId=…, or as {"webhookId": "…"} in a JSON body';

const query: Parameter[] = [
  {
    name: 'webhookId',
    in: 'query',
    description: 'Webhook id. It may also stand in the path or in a JSON body',
    schema: { type: 'string' },
  },
  {
    name: 'webhookUrl',
    in: 'query',
    description: 'In place of an id: unsubscribes every webhook with exactly this URL',
    schema: { type: 'string' },
  },
  {
    name: 'workflowId',
    in: 'query',
    description: 'With webhookUrl: only the webhooks of this workflow',
    schema: { type: 'string' },
  },
];

export const unsubscribeWebhook: Operation<KeyedCall> = {
  id: 'unsubscribeWebhook',
  frozen: true,
  group: 'Integrations',
  summary: 'Unsubscribes an existing webhook',
  description: `${THREE_WAYS}. Where several name one, they must name the same. A body that is no JSON object is ignored.`,
  parameters: query,
  requestBody: jsonBody(
    {
      type: 'object',
      additionalProperties: true,
      properties: { webhookId: { type: 'string', description: 'Webhook id' } },
    },
    { required: false, example: { webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p' } },
  ),
  answer: jsonResponse('Unsubscribed', messageResource),
  refusals: {
    field_invalid: 'Bad request: no webhook is named, or several that differ',
    webhook_not_found: 'No webhook found',
  },

  async handle({ services: { store }, caller: { teamId }, params, query, request }) {
    const id = idFrom([
      ...pathIds(params),
      ...queryValues(query, 'webhookId'),
      ...(await bodyIds(request.raw)),
    ]);
    const url = queryValue(query, 'webhookUrl');
    if (id !== undefined && url !== undefined) throw new Problem('field_invalid', { sentence: THREE_WAYS });

    if (id !== undefined) {
      const removed = isGeneratedId('wh', id) ? await store.webhooks.unsubscribe({ teamId, ids: [id] }) : 0;
      if (removed === 0) throw new Problem('webhook_not_found');
      return { message: `Webhook ${id} unsubscribed` };
    }

    if (url === undefined) throw new Problem('field_invalid', { sentence: THREE_WAYS });
    const workflowId = queryValue(query, 'workflowId');
    const which = { teamId, url, ...(workflowId === undefined ? {} : { workflowId }) };
    const ids = await Array.fromAsync(everyRowInTurn(store.webhooks.list, which), ({ id }) => id);
    const removed = await store.webhooks.unsubscribe({ teamId, ids });
    if (removed === 0) throw new Problem('webhook_not_found');
    return { message: `${removed} webhook${removed === 1 ? '' : 's'} with this URL unsubscribed` };
  },
};

/** The same with the id in the path, which is a route of its own. */
const { requestBody: _, ...withoutBody } = unsubscribeWebhook;
export const unsubscribeWebhookByPath: Operation<KeyedCall> = {
  ...withoutBody,
  id: 'unsubscribeWebhookByPath',
  summary: 'Unsubscribes an existing webhook, named in the path',
  parameters: [pathParameter('webhookId', 'Webhook id')],
};

function pathIds(params: Readonly<Record<string, string | undefined>>): string[] {
  if (!('webhookId' in params)) return [];
  if (params.webhookId === undefined) throw new Problem('path_invalid');
  return [params.webhookId];
}

/** The id in the body. The contract declares no body, so any without an id is ignored. */
async function bodyIds(request: IncomingMessage): Promise<string[]> {
  const body = await readBody(request);
  if (body.kind !== 'object' || body.value.webhookId === undefined) return [];
  const id = body.value.webhookId;
  return [typeof id === 'string' ? id : ''];
}

/** The one id that all places agree on; undefined when there is none. */
function idFrom(ids: readonly string[]): string | undefined {
  if (ids.includes('') || new Set(ids).size > 1) throw new Problem('field_invalid', { sentence: THREE_WAYS });
  return ids[0];
}
