/** The webhook operations of the contract: list, subscribe and unsubscribe. */

import type { IncomingMessage } from 'node:http';
import { Problem } from '../../model/error.ts';
import { isMailUrl } from '../../model/messages/mail-address.ts';
import { RULE_FIELDS } from '../../model/rule.ts';
import { eventsMistake, MAX_EVENT_NAME, MAX_EVENTS, MAX_URL, urlMistake } from '../../model/webhook.ts';
import { messageResource } from '../../resources/error.ts';
import { webhookResource } from '../../resources/webhook.ts';
import { exactly, list, object } from '../../std/shape.ts';
import { subscribeWebhook as subscribe } from '../../webhooks/subscribe.ts';
import { bodyFields, readBody } from '../input/body.ts';
import { allRowsInTurn, workflowFilter } from '../input/list-page.ts';
import { queryValues, textParameter } from '../input/query.ts';
import { invalid, isGeneratedId, workflowIdFrom } from '../input/values.ts';
import { jsonBody, jsonResponse } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

export const listWebhooks: Operation<KeyedCall> = {
  id: 'listWebhooks',
  frozen: true,
  group: 'Integrations',
  summary: 'List webhooks',
  description: 'Returns all webhooks of the team, oldest first.',
  parameters: [textParameter('workflowId', 'Filter by workflow ID')],
  answer: jsonResponse('All webhooks, oldest first', exactly(object({ webhooks: list(webhookResource) }))),
  errors: {
    field_invalid: 'Bad request: `workflowId` is empty or repeated',
    workflow_not_found: 'No workflow found',
  },

  async handle(call) {
    const { services, caller } = call;
    const whose = { teamId: caller.teamId, ...(await workflowFilter(call)) };
    const all = await allRowsInTurn(services.store.webhooks.list, whose);
    // Webhooks are sorted by creation time, because IDs are out of order after a clock has been set back.
    return {
      webhooks: all
        .sort((one, other) => one.createdAt - other.createdAt)
        .map((one) => webhookResource.of(one)),
    };
  },
};

const urlSchema = {
  type: 'string',
  maxLength: MAX_URL,
  // The part of `urlMistake` that a pattern can express.
  pattern: String.raw`^[hH][tT][tT][pP][sS]?://[^/?#\\\s][^\\\s]*$`,
};
export const eventsSchema = {
  type: 'array',
  minItems: 1,
  maxItems: MAX_EVENTS,
  items: { type: 'string', minLength: 1, maxLength: MAX_EVENT_NAME },
};

/**
 * Ignoring these fields would do the opposite of what the caller wants: for example, a webhook without its `filter`
 * would receive every event.
 */
const SETTINGS = [...RULE_FIELDS, 'headers', 'ordered', 'ratePerSecond', 'timeoutMs'];

export const subscribeWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'subscribeWebhook',
  frozen: true,
  group: 'Integrations',
  summary: 'Subscribe a webhook',
  description:
    'Creates a webhook for events of one workflow. Repeating the call creates nothing, and resumes the webhook if it ' +
    'was paused. `message` has the ID of the webhook, and a warning for each event name that Flowhook never sends.',
  requestBody: jsonBody(
    {
      type: 'object',
      additionalProperties: true,
      required: ['workflowId', 'webhookUrl', 'events'],
      properties: {
        workflowId: { type: 'string', minLength: 1, description: 'Workflow ID' },
        webhookUrl: { ...urlSchema, description: 'Callback URL: absolute, http or https' },
        events: { ...eventsSchema, description: 'Names of the events to subscribe to. Any name is accepted' },
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
  answer: jsonResponse('Webhook subscribed', messageResource, {
    'x-webhook-id': 'ID of the webhook',
    location: 'URL of the webhook',
  }),
  errors: {
    field_invalid: 'Bad request: a field is not valid',
    webhook_limit: 'Maximum number of webhooks reached',
    workflow_not_found: 'No workflow found',
  },

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
    `\`${name}\` is a setting, which this operation does not accept: omit it. ` +
    'POST /v1/integrations/webhooks accepts settings'
  );
}

function checked(body: Record<string, unknown>): { workflowId: string; url: string; events: string[] } {
  const { workflowId, webhookUrl, events } = body;
  const mistake =
    typeof workflowId !== 'string' || workflowId === ''
      ? '`workflowId` must be a non-empty string: the id of a workflow'
      : (contractUrlMistake(webhookUrl) ?? eventsMistake(events));
  if (mistake !== undefined) invalid(mistake);
  return { workflowId: workflowId as string, url: webhookUrl as string, events: events as string[] };
}

/** The contract knows no mail addresses, so the sentence names the operation that does. */
function contractUrlMistake(url: unknown): string | undefined {
  const mistake = urlMistake(url);
  const isMail = typeof url === 'string' && isMailUrl(url);
  return isMail && mistake !== undefined
    ? `${mistake}. POST /v1/integrations/webhooks accepts mailto:`
    : mistake;
}

const THREE_WAYS =
  'Name one webhook: as the last segment of the path (…/unsubscribe/{webhookId}), ' +
  'as ?webhookId=…, or as {"webhookId": "…"} in a JSON body';

const URL = textParameter(
  'webhookUrl',
  'Callback URL, instead of an ID: unsubscribes every webhook with exactly this URL',
);
const WORKFLOW = textParameter(
  'workflowId',
  'Workflow ID, together with `webhookUrl`: unsubscribes only webhooks of this workflow',
);

export const unsubscribeWebhook: Operation<KeyedCall> = {
  id: 'unsubscribeWebhook',
  frozen: true,
  group: 'Integrations',
  summary: 'Unsubscribe a webhook',
  description: `${THREE_WAYS}. If several are used, they must agree. A body that is not a JSON object is ignored.`,
  parameters: [
    textParameter('webhookId', 'Webhook ID. May also be sent in the path or in a JSON body'),
    URL,
    WORKFLOW,
  ],
  requestBody: jsonBody(
    {
      type: 'object',
      additionalProperties: true,
      properties: { webhookId: { type: 'string', description: 'Webhook ID' } },
    },
    { required: false, example: { webhookId: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p' } },
  ),
  answer: jsonResponse('Webhook unsubscribed', messageResource),
  errors: {
    field_invalid: 'Bad request: no webhook ID, or several that differ',
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
    const ids = (await allRowsInTurn(store.webhooks.list, which)).map(({ id }) => id);
    const removed = await store.webhooks.unsubscribe({ teamId, ids });
    if (removed === 0) throw new Problem('webhook_not_found');
    return { message: `${removed} webhook${removed === 1 ? '' : 's'} with this URL unsubscribed` };
  },
};

/** A separate route with the ID in the path. */
const { requestBody: _, ...withoutBody } = unsubscribeWebhook;
export const unsubscribeWebhookByPath: Operation<KeyedCall> = {
  ...withoutBody,
  id: 'unsubscribeWebhookByPath',
  summary: 'Unsubscribe a webhook by path',
  parameters: [pathParameter('webhookId', 'Webhook ID')],
};

function pathIds(params: Readonly<Record<string, string | undefined>>): string[] {
  if (!('webhookId' in params)) return [];
  if (params.webhookId === undefined) throw new Problem('path_invalid');
  return [params.webhookId];
}

/** The ID in the body. The contract declares no body, so any body without an ID is ignored. */
async function bodyIds(request: IncomingMessage): Promise<string[]> {
  const body = await readBody(request);
  if (body.kind !== 'object' || body.value.webhookId === undefined) return [];
  const id = body.value.webhookId;
  return [typeof id === 'string' ? id : ''];
}

/** The webhook ID of a request. Every place that holds an ID must hold the same one. Undefined if none holds an ID. */
function idFrom(ids: readonly string[]): string | undefined {
  if (ids.includes('') || new Set(ids).size > 1) throw new Problem('field_invalid', { sentence: THREE_WAYS });
  return ids[0];
}
