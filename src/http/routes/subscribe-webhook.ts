/** POST /v1/integrations/webhooks/subscribe: creates and subscribes a new webhook. */

import { eventsMistake, MAX_EVENT_NAME, MAX_EVENTS, MAX_URL, urlMistake } from '../../model/webhook.ts';
import { messageResource } from '../../resources/error.ts';
import { subscribeWebhook as subscribe } from '../../webhooks/subscribe.ts';
import { bodyFields } from '../body.ts';
import { workflowIdFrom } from '../ids.ts';
import { jsonBody, jsonResponse, URL_PATTERN } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { invalid } from '../values.ts';

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

export const subscribeWebhook: Operation<KeyedCall> = {
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
        webhookUrl: {
          type: 'string',
          maxLength: MAX_URL,
          pattern: URL_PATTERN,
          description: 'Webhook URL: absolute, http or https',
        },
        events: {
          type: 'array',
          minItems: 1,
          maxItems: MAX_EVENTS,
          items: { type: 'string', minLength: 1, maxLength: MAX_EVENT_NAME },
          description: 'The events to subscribe to; any names',
        },
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
  refusals: { field_invalid: 'Bad request', workflow_not_found: 'No workflow found' },

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
