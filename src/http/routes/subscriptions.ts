/** The operations of the contract on webhooks: listing, subscribing and unsubscribing them. */

import type { IncomingMessage } from 'node:http';
import { Problem } from '../../model/error.ts';
import { eventsMistake, MAX_EVENT_NAME, MAX_EVENTS, MAX_URL, urlMistake } from '../../model/webhook.ts';
import { messageResource } from '../../resources/error.ts';
import { webhookResource } from '../../resources/webhook.ts';
import { exactly, list, object } from '../../std/shape.ts';
import { subscribeWebhook as subscribe } from '../../webhooks/subscribe.ts';
import { bodyFields, readBody } from '../input/body.ts';
import { everyRowInTurn, workflowFilter } from '../input/list-page.ts';
import { queryValues, textParameter } from '../input/query.ts';
import { invalid, isGeneratedId, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

export const listWebhooks: Operation<KeyedCall> = {
  id: 'listWebhooks',
  frozen: true,
  group: 'Integrations',
  summary: 'Shows all webhooks of a team',
  parameters: [textParameter('workflowId', 'Only the webhooks of this workflow')],
  answer: jsonResponse('The webhooks, oldest first', exactly(object({ webhooks: list(webhookResource) }))),
  errors: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

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

export const urlSchema = {
  type: 'string',
  maxLength: MAX_URL,
  // As much of `urlMistake` as a pattern can say.
  pattern: String.raw`^[hH][tT][tT][pP][sS]?://[^/?#\\\s][^\\\s]*$`,
};
export const eventsSchema = {
  type: 'array',
  minItems: 1,
  maxItems: MAX_EVENTS,
  items: { type: 'string', minLength: 1, maxLength: MAX_EVENT_NAME },
};

/** Ignoring one of these would do the opposite of what was meant: a `filter` that is ignored sends everything. */
const SETTINGS = [
  'filter',
  'format',
  'template',
  'firstVersion',
  'cooldown',
  'digest',
  'headers',
  'ordered',
  'ratePerSecond',
  'timeoutMs',
];

export const subscribeWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'subscribeWebhook',
  frozen: true,
  group: 'Integrations',
  summary: 'Creates and subscribes a new webhook',
  description:
    'Repeating a subscription creates nothing and resumes the webhook if it was paused. ' +
    'The message names the webhook, and says which of the events never fire here.',
  requestBody: jsonBody(
    {
      type: 'object',
      additionalProperties: true,
      required: ['workflowId', 'webhookUrl', 'events'],
      properties: {
        workflowId: { type: 'string', minLength: 1, description: 'Workflow ID' },
        webhookUrl: { ...urlSchema, description: 'Webhook URL: absolute, http or https' },
        events: { ...eventsSchema, description: 'The events to subscribe to; any names' },
      },
    },
    {
      example: {
        workflowId: 'people',
        webhookUrl: 'https://example.com/hooks/people',
        events: ['workflow_finished', 'workflow_data_change'],
      },
    },
  ),
  misplaced: Object.fromEntries(SETTINGS.map((name) => [name, settingElsewhere(name)])),
  answer: jsonResponse('Subscribed', messageResource, {
    'x-webhook-id': 'The webhook',
    location: 'Where the webhook can be read',
  }),
  errors: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

  async handle(call) {
    const { services, caller, reply } = call;
    const fields = checked(
      await bodyFields(call, 'a JSON object with `workflowId`, `webhookUrl` and `events`'),
    );
    const { webhook, message } = await subscribe(services.webhooks, {
      teamId: caller.teamId,
      workflowId: workflowIdFrom(fields.workflowId),
      url: fields.url,
      events: fields.events,
    });
    reply.headers({ 'x-webhook-id': webhook.id, location: `/v1/integrations/webhooks/${webhook.id}` });
    return { message };
  },
};

function settingElsewhere(name: string): string {
  return (
    `\`${name}\` is a setting, and this operation takes none: leave it out. ` +
    'POST /v1/integrations/webhooks takes the settings that this version has'
  );
}

function checked(body: Record<string, unknown>): { workflowId: string; url: string; events: string[] } {
  const { workflowId, webhookUrl, events } = body;
  const mistake =
    typeof workflowId !== 'string' || workflowId === ''
      ? '`workflowId` must be a non-empty string: the id of a workflow'
      : (urlMistake(webhookUrl) ?? eventsMistake(events));
  if (mistake !== undefined) invalid(mistake);
  return { workflowId: workflowId as string, url: webhookUrl as string, events: events as string[] };
}

const THREE_WAYS =
  'Name one webhook: as the last segment of the path (…/unsubscribe/{webhookId}), ' +
  'as ?webhookId=…, or as {"webhookId": "…"} in a JSON body';

const URL = textParameter(
  'webhookUrl',
  'In place of an id: unsubscribes every webhook with exactly this URL',
);
const WORKFLOW = textParameter('workflowId', 'With webhookUrl: only the webhooks of this workflow');

export const unsubscribeWebhook: Operation<KeyedCall> = {
  id: 'unsubscribeWebhook',
  frozen: true,
  group: 'Integrations',
  summary: 'Unsubscribes an existing webhook',
  description: `${THREE_WAYS}. Where several name one, they must name the same. A body that is no JSON object is ignored.`,
  parameters: [
    textParameter('webhookId', 'Webhook id. It may also stand in the path or in a JSON body'),
    URL,
    WORKFLOW,
  ],
  requestBody: jsonBody(
    {
      type: 'object',
      additionalProperties: true,
      properties: { webhookId: { type: 'string', description: 'Webhook id' } },
    },
    { required: false, example: { webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p' } },
  ),
  answer: jsonResponse('Unsubscribed', messageResource),
  errors: {
    field_invalid: 'Bad request: no webhook is named, or several that differ',
    webhook_not_found: 'No webhook found',
  },

  async handle({ services: { store }, caller: { teamId }, params, query, request }) {
    const id = idFrom([
      ...pathIds(params),
      ...queryValues(query, 'webhookId'),
      ...(await bodyIds(request.raw)),
    ]);
    const url = URL.read(query);
    if (id !== undefined && url !== undefined) throw new Problem('field_invalid', { sentence: THREE_WAYS });

    if (id !== undefined) {
      const removed = isGeneratedId('wh', id) ? await store.webhooks.unsubscribe({ teamId, ids: [id] }) : 0;
      if (removed === 0) throw new Problem('webhook_not_found');
      return { message: `Webhook ${id} unsubscribed` };
    }

    if (url === undefined) throw new Problem('field_invalid', { sentence: THREE_WAYS });
    const workflowId = WORKFLOW.read(query);
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
