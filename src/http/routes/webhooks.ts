/** Webhook operations beyond the contract: create, read, update, test, pause, resume. */

import { found } from '../../model/error.ts';
import { allows } from '../../model/team.ts';
import {
  destinationMistake,
  knownEventsMistake,
  MAX_PAUSE_REASON,
  MAX_URL,
  reasonMistake,
  type Webhook,
} from '../../model/webhook.ts';
import {
  createdWebhookResource,
  maskedWebhook,
  shownBreaker,
  shownWebhook,
  webhookDetailResource,
} from '../../resources/webhook.ts';
import { object, text } from '../../std/shape.ts';
import {
  changesFrom,
  changeWebhook,
  changeWords,
  newRule,
  type WebhookChanges,
} from '../../webhooks/change-webhook.ts';
import { testWords } from '../../webhooks/replay.ts';
import { subscribeWebhook as subscribe } from '../../webhooks/subscribe.ts';
import { checkIfMatch, IF_MATCH, sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import {
  IDEMPOTENCY_KEY_WITHOUT_BODY,
  idempotencyKeyFrom,
  invalid,
  keyOfPath,
  workflowIdFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, messageWith } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { DESTINATION_PATTERN, namedEvents, RULE, settings, TEXTS } from './webhook-fields.ts';

const PAUSED = 'Paused over the API';

const parameters = [pathParameter('webhookId', 'Webhook ID')];
const errors = { webhook_not_found: 'No webhook found' };
const changed = messageWith('webhook', webhookDetailResource);
/** Part of the descriptions of operations that also accept readers. */
export const MASKED =
  'A key needs the scope `read` or `webhooks`; without `webhooks`, what may be secret is masked.';

/** POST /v1/integrations/webhooks */
export const createWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'createWebhook',
  group: 'Integrations',
  summary: 'Create a webhook',
  description:
    'Subscribes a webhook to the events of one workflow or, without `workflowId`, of all workflows of the team, present ' +
    'and future. Repeating the call with the same workflow, URL, events and filter creates nothing, updates the other ' +
    'fields of the request, and resumes the webhook if it was paused. A webhook that sends mail is paused until the ' +
    'recipient has confirmed the address with the link in a mail that this call sends. `message` says what the call has done.',
  requestBody: jsonBody({
    type: 'object',
    required: ['webhookUrl', 'events'],
    properties: {
      webhookUrl: {
        type: 'string',
        maxLength: MAX_URL,
        pattern: DESTINATION_PATTERN,
        description: 'Callback URL: absolute, http or https; or `mailto:` with one address',
        examples: ['https://example.com/hooks/people', 'mailto:ops@example.org'],
      },
      events: namedEvents,
      workflowId: {
        type: ['string', 'null'],
        minLength: 1,
        description: 'Workflow ID (default: `null`, all workflows of the team)',
      },
      ...TEXTS,
      ...RULE,
      settings,
    },
  }),
  answer: jsonResponse('Webhook subscribed', createdWebhookResource, {
    'x-webhook-id': 'ID of the webhook',
    location: 'URL of the webhook',
  }),
  errors: {
    field_invalid: 'A field is not valid',
    webhook_limit: 'Maximum number of webhooks reached',
    workflow_not_found: 'No workflow found',
  },

  async handle(call) {
    const {
      services,
      caller: { teamId },
      reply,
    } = call;
    const fields = await bodyFields(call, 'a JSON object with `webhookUrl` and `events`');
    const { changes, ...subscription } = subscriptionFrom(fields);
    const { headers: _, name = null, description = null, labels = [], ...others } = changes;
    const { message, ...made } = await subscribe(services.webhooks, {
      teamId,
      ...subscription,
      name,
      description,
      labels,
      rule: await newRule(subscription.url, changes),
      settings: others,
    });
    const { id } = made.webhook;
    const isChanged = Object.keys(changes).length > 0;
    const webhook = isChanged
      ? await changeWebhook(services.webhooks, { teamId, id, changes })
      : made.webhook;
    reply.headers({ 'x-webhook-id': id, location: `/v1/integrations/webhooks/${id}` });
    return { ...(await shownWebhook(services.webhooks, webhook)), message };
  },
};

/** GET /v1/integrations/webhooks/{webhookId} */
export const readWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'readWebhook',
  group: 'Integrations',
  etag: true,
  summary: 'Read a webhook',
  description: `Returns the settings and the state of a webhook. ${MASKED}`,
  parameters,
  answer: jsonResponse('Webhook', webhookDetailResource),
  errors,

  async handle(call) {
    const webhook = await webhookOf(call);
    const shown = JSON.stringify(await shownTo(call, webhook));
    // The tag says nothing about what is masked.
    return sendWithETag(call, shown, mayManage(call) ? (await settingsOf(call, webhook)).text : undefined);
  },
};

/** PATCH /v1/integrations/webhooks/{webhookId} */
export const updateWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'updateWebhook',
  group: 'Integrations',
  summary: 'Update a webhook',
  description:
    'Changes a webhook. Omitted fields stay unchanged. New events and a new rule apply to later events. Waiting deliveries ' +
    'go to a new `url`, about whose health nothing is known at first; a new mail address must be confirmed, as for a new ' +
    'webhook. The secret stays the same without `rotateSecret`. If the new `url` has another origin and the webhook has ' +
    'custom headers, set `headers` as well. `message` says what may prevent deliveries.',
  parameters: [...parameters, IF_MATCH],
  requestBody: jsonBody({
    ...settings,
    properties: {
      url: {
        type: 'string',
        maxLength: MAX_URL,
        pattern: DESTINATION_PATTERN,
        description:
          'New callback URL: absolute, http or https; or `mailto:` with one address if the webhook sends mail',
      },
      events: namedEvents,
      rotateSecret: {
        type: 'boolean',
        description:
          '`true` to replace the secret immediately, for example because somebody else receives at the new URL. ' +
          '`POST …/rotate` replaces it with an overlap',
      },
      ...TEXTS,
      ...RULE,
      ...settings.properties,
    },
  }),
  answer: jsonResponse('Webhook updated', changed),
  errors: {
    field_invalid: 'A field is not valid',
    ...errors,
    webhook_exists: 'Another webhook has the same workflow, URL, events and filter',
    mail_unavailable: 'The new URL is a mail address, and this node has no SMTP server',
    precondition_failed: 'Webhook changed: `If-Match` does not have the current `ETag`',
  },

  async handle(call) {
    const { services } = call;
    const changes = changesFrom(await bodyFields(call, 'a JSON object with the fields to change'));
    const before = await webhookOf(call);
    const { text, expected } = await settingsOf(call, before);
    const { teamId, id } = before;
    const change = { teamId, id, changes, expected: checkIfMatch(call, text) ? expected : undefined };
    const webhook = await changeWebhook(services.webhooks, change);
    const message = await changeWords(services.webhooks, webhook);
    return { message, webhook: await shownWebhook(services.webhooks, webhook) };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/test */
export const testWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'testWebhook',
  group: 'Integrations',
  summary: 'Send a test event',
  description: 'Sends a `webhook_test` event to this webhook only, whichever events it is subscribed to.',
  parameters: [...parameters, IDEMPOTENCY_KEY_WITHOUT_BODY],
  answer: jsonResponse(
    'Test event queued. `message` says whether the webhook is held back',
    object({ message: text(), eventId: text(), deliveryId: text() }),
    { location: 'URL of the delivery' },
  ),
  errors: { field_invalid: 'The header `idempotency-key` is empty or too long', ...errors },

  async handle(call) {
    const idempotencyKey = idempotencyKeyFrom(call);
    const webhook = await webhookOf(call);
    const { teamId, id } = webhook;
    const test = await call.services.store.webhooks.test({ teamId, id, idempotencyKey });
    const made = found(test, 'webhook_not_found');
    call.reply.header('location', `/v1/deliveries/${made.deliveryId}`);
    const message = testWords(webhook, await shownBreaker(call.services.webhooks, webhook));
    return { message, ...made };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/pause */
export const pauseWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'pauseWebhook',
  group: 'Integrations',
  summary: 'Pause a webhook',
  description:
    'Holds back the deliveries of the webhook, including those of new events, until the webhook is resumed. ' +
    'Deliveries that have waited for about four days become `dead`. Repeating the call is harmless, and ' +
    'keeps the first `reason`.',
  parameters,
  requestBody: jsonBody(
    {
      type: 'object',
      properties: {
        reason: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_PAUSE_REASON,
          description: `Text shown as \`pausedReason\` (default: "${PAUSED}")`,
        },
      },
    },
    { required: false },
  ),
  answer: jsonResponse('Webhook paused', changed),
  errors: { field_invalid: '`reason` is not valid', ...errors },

  async handle(call) {
    const { store, webhooks } = call.services;
    const reason = reasonFrom(await bodyFields(call));
    const paused = await store.webhooks.pause({ ...keyOfPath(call, 'wh'), reason });
    const webhook = await shownWebhook(webhooks, found(paused, 'webhook_not_found'));
    return { message: 'Webhook paused', webhook };
  },
};

/** POST /v1/integrations/webhooks/{webhookId}/resume */
export const resumeWebhook: Operation<KeyedCall<'webhooks'>> = {
  id: 'resumeWebhook',
  group: 'Integrations',
  summary: 'Resume a webhook',
  description: 'Ends the pause of a webhook and sends its waiting deliveries.',
  parameters,
  answer: jsonResponse('Webhook active', changed),
  errors,

  async handle(call) {
    const { store, webhooks } = call.services;
    const resumed = await store.webhooks.resume(keyOfPath(call, 'wh'));
    const webhook = await shownWebhook(webhooks, found(resumed, 'webhook_not_found'));
    return { message: 'Webhook resumed', webhook };
  },
};

export function mayManage({ caller }: KeyedCall): boolean {
  return allows(caller.scopes, 'webhooks');
}

/** A webhook as the caller may see it. */
export function shownTo(call: KeyedCall<'webhooks'>, webhook: Webhook) {
  const show = mayManage(call) ? shownWebhook : maskedWebhook;
  return show(call.services.webhooks, webhook);
}

/**
 * The webhook whose ID is in the path, if the caller's team owns it.
 *
 * @throws Problem `webhook_not_found`
 */
export async function webhookOf(call: KeyedCall): Promise<Webhook> {
  return found(await call.services.store.webhooks.get(keyOfPath(call, 'wh')), 'webhook_not_found');
}

/** The part that `If-Match` compares: the settings, without the state of the deliveries. */
async function settingsOf({ services }: KeyedCall, webhook: Webhook) {
  const { teamId, id, settings, name, description, labels, url, events, rule } = webhook;
  const headers = (await services.store.webhooks.sealed({ teamId, id }))?.headers ?? null;
  const expected = { settings, headers, name, description, labels, url, events, rule };
  return { text: JSON.stringify(expected), expected };
}

function subscriptionFrom({ webhookUrl, events, workflowId = null, settings, ...others }: Fields): {
  workflowId: string | null;
  url: string;
  events: string[];
  changes: WebhookChanges;
} {
  const mistake = destinationMistake(webhookUrl) ?? knownEventsMistake(events);
  if (mistake !== undefined) invalid(mistake);
  if (workflowId !== null && (typeof workflowId !== 'string' || workflowId === '')) {
    invalid('`workflowId` must be the id of a workflow, or null for all workflows of the team');
  }
  if (
    settings !== undefined &&
    (typeof settings !== 'object' || settings === null || Array.isArray(settings))
  ) {
    invalid('`settings` must be an object, such as { "ordered": true }');
  }
  return {
    workflowId: workflowId === null ? null : workflowIdFrom(String(workflowId)),
    url: webhookUrl as string,
    events: events as string[],
    changes: {
      ...(settings === undefined ? {} : changesFrom(settings as Fields)),
      ...(Object.keys(others).length === 0 ? {} : changesFrom(others)),
    },
  };
}

type Fields = Record<string, unknown>;

function reasonFrom({ reason }: Record<string, unknown>): string {
  if (reason === undefined) return PAUSED;
  const mistake = reasonMistake(reason);
  return mistake === undefined ? String(reason) : invalid(mistake);
}
