/** Deliveries to all webhooks of a team: finding them, and retrying those that have not arrived. */

import { DELIVERY_STATES, NOT_ARRIVED } from '../../model/delivery.ts';
import { found } from '../../model/error.ts';
import { EVENT_TYPES, type EventType } from '../../model/event.ts';
import { MAX_LABEL } from '../../model/webhook.ts';
import { deliveryResource, shownDelivery } from '../../resources/delivery.ts';
import { retryPlanResource, retryResource, shownRetry } from '../../resources/retry.ts';
import { as, object, optional, text } from '../../std/shape.ts';
import type { RetrySelection } from '../../store/operations/deliveries/retries.ts';
import { planRetry, retryOutcome, retryWords, startRetry, webhooksOf } from '../../webhooks/retry.ts';
import { bodyFields } from '../input/body.ts';
import {
  byId,
  listOperation,
  makeIdCursor,
  PERIOD,
  WORKFLOW_FILTER,
  workflowFilter,
} from '../input/list-page.ts';
import {
  choicesParameter,
  MAX_SEARCHED,
  STATUS_SCHEMA,
  statusFrom,
  statusParameter,
  textParameter,
} from '../input/query.ts';
import {
  IDEMPOTENCY_KEY,
  idFrom,
  invalid,
  keyOfFields,
  keyOfPath,
  namesFrom,
  timeFrom,
  workflowIdFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, requestTime } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';

/** GET /v1/deliveries */
export const listDeliveries = listOperation({
  id: 'listDeliveries',
  group: 'Integrations',
  summary: 'List deliveries',
  description:
    'Returns the deliveries to all webhooks of the team, newest first. A page searches at most 2,000 deliveries. If ' +
    'few of them match `workflowId`, `event`, `status` or `q`, it has fewer items than `limit`, possibly none, and the ' +
    'next page continues there. The last page is the one without a `Link` header.',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [WORKFLOW_FILTER],
  filters: {
    states: choicesParameter('state', DELIVERY_STATES, 'Filter by state'),
    webhookId: textParameter('webhookId', 'Filter by webhook ID'),
    label: textParameter('label', 'Filter by label of the webhook', MAX_LABEL),
    eventTypes: choicesParameter('event', EVENT_TYPES, 'Filter by event type'),
    status: statusParameter(
      'status',
      'Filter by the last attempt: its status, such as `503`, a class such as `5xx`, or `none` if there was no response',
    ),
    q: textParameter(
      'q',
      'Text in the last error, or in the name or URL of the webhook, ignoring the case of ASCII letters; or the exact ID ' +
        'of the delivery or its event',
      MAX_SEARCHED,
    ),
    ...PERIOD,
  },
  errors: {
    workflow_not_found: 'No workflow found',
    webhook_not_found: 'The filter is not the ID of a webhook',
  },
  async rows(call, { limit, ...range }) {
    if (range.webhookId !== undefined) idFrom('wh', range.webhookId);
    const { rows, next } = await call.services.store.deliveries.search({
      teamId: call.caller.teamId,
      ...(await workflowFilter(call)),
      ...range,
      limit: limit - 1,
    });
    return { rows, next: next === null ? null : makeIdCursor(next) };
  },
  show: shownDelivery,
});

/** POST /v1/deliveries/retry */
export const retryDeliveries: Operation<KeyedCall> = {
  id: 'retryDeliveries',
  group: 'Integrations',
  summary: 'Retry what has not arrived',
  description:
    'Sends the selected deliveries to all webhooks now. A waiting delivery keeps its ID and its attempts, and becomes due ' +
    'immediately. For any other delivery, a new one is created. Events keep their `webhook-id`, and none is sent twice. ' +
    'With `dryRun`, nothing is sent: the response has the counts per webhook, and an `until` to repeat, so that later ' +
    'deliveries are not selected. A retry is a replay of each webhook: it runs in the background, keeps the order of ' +
    '`ordered` webhooks (waiting deliveries of earlier events are sent first), tries an endpoint that is held back ' +
    'immediately, and continues after a restart. Nothing is sent to paused webhooks until they are resumed.',
  parameters: [IDEMPOTENCY_KEY],
  requestBody: jsonBody({
    type: 'object',
    properties: {
      states: {
        type: 'array',
        minItems: 1,
        items: { enum: DELIVERY_STATES },
        default: NOT_ARRIVED,
        description: 'Only deliveries in these states (default: all that have not arrived)',
      },
      webhookId: { type: 'string', minLength: 1, description: 'Only deliveries to this webhook' },
      label: {
        type: 'string',
        minLength: 1,
        maxLength: MAX_LABEL,
        description: 'Only deliveries to webhooks with this label',
      },
      workflowId: { type: 'string', minLength: 1, description: 'Only events of this workflow' },
      events: {
        type: 'array',
        minItems: 1,
        items: { enum: EVENT_TYPES },
        description: 'Only events of these types',
      },
      status: {
        ...STATUS_SCHEMA,
        description:
          'Only deliveries whose last attempt had this status, such as `503`, a class such as `5xx`, or `none` if there was no response',
      },
      since: { ...requestTime, description: 'Only deliveries created at or after this time' },
      until: { ...requestTime, description: 'Only deliveries created at or before this time (default: now)' },
      dryRun: {
        type: 'boolean',
        default: false,
        description: '`true` to count the events without sending them',
      },
    },
  }),
  answer: jsonResponse(
    'Retry started, or events counted',
    object({
      message: text(),
      retry: optional(as('Retry that was started. Missing if there is nothing to send', retryResource)),
      plan: optional(as('Preview of the retry, with `dryRun`. Nothing was sent', retryPlanResource)),
    }),
    { location: 'URL of the retry' },
  ),
  errors: {
    field_invalid: 'A field is not valid, or the deliveries belong to more than 1,000 webhooks',
    webhook_not_found: 'No webhook found',
    workflow_not_found: 'No workflow found',
    idempotency_key_reused: '`idempotency-key` already used with a different body',
  },

  async handle(call) {
    const { store } = call.services;
    const fields = await bodyFields(call);
    if (fields.dryRun !== undefined && typeof fields.dryRun !== 'boolean') {
      invalid('`dryRun` must be true or false');
    }
    const selection = await selectionFrom(call, fields);
    if (fields.dryRun === true) {
      const plan = await planRetry(store, selection);
      return { message: retryWords(plan), plan: retryPlanResource.of(plan) };
    }
    const idempotencyKey = keyOfFields(call, fields);
    const webhookIds = await webhooksOf(store.deliveries, selection);
    const id = await startRetry(store, selection, webhookIds, idempotencyKey);
    if (id === undefined) return { message: 'There is nothing to send' };
    const location = `/v1/retries/${id}`;
    call.reply.header('location', location);
    const retry = await shownRetryOf(call, { teamId: call.caller.teamId, id });
    return { message: `Retry ${id} started. GET ${location} returns its progress`, retry };
  },
};

/** GET /v1/retries/{retryId} */
export const readRetry: Operation<KeyedCall> = {
  id: 'readRetry',
  group: 'Integrations',
  summary: 'Read a retry',
  description: 'Returns the progress of a retry, and what the receivers returned, in total and per webhook.',
  parameters: [pathParameter('retryId', 'Retry ID')],
  answer: jsonResponse('Retry', retryResource),
  errors: { retry_not_found: 'No retry found' },
  handle: (call) => shownRetryOf(call, keyOfPath(call, 'rty')),
};

async function shownRetryOf({ services }: KeyedCall, of: { teamId: string; id: string }) {
  const replays = await services.store.deliveries.replaysOfRetry(of);
  found(replays[0], 'retry_not_found');
  return shownRetry(of.id, await retryOutcome(services.store, replays));
}

/** @throws Problem `field_invalid`, `webhook_not_found`, `workflow_not_found` */
async function selectionFrom(
  { services, caller: { teamId } }: KeyedCall,
  fields: Record<string, unknown>,
): Promise<RetrySelection> {
  const { store } = services;
  const text = (name: string) => {
    const value = fields[name];
    return value === undefined || typeof value === 'string' ? value : invalid(`\`${name}\` must be text`);
  };
  const [webhook, workflow, status] = [text('webhookId'), text('workflowId'), text('status')];
  const since = fields.since === undefined ? 0 : timeFrom(fields.since, '`since`');
  const until = fields.until === undefined ? store.now() : timeFrom(fields.until, '`until`');
  if (since > until) invalid('`since` must not be after `until` (default: now)');
  const states = namesFrom(fields.states, 'states', DELIVERY_STATES) ?? NOT_ARRIVED;
  const eventTypes: EventType[] | undefined = namesFrom(fields.events, 'events', EVENT_TYPES);
  const label = text('label');
  const selection: RetrySelection = { teamId, states, since, until, narrowing: {} };
  if (label !== undefined) selection.label = label;
  if (webhook !== undefined) {
    selection.webhookId = idFrom('wh', webhook);
    found(await store.webhooks.get({ teamId, id: selection.webhookId }), 'webhook_not_found');
  }
  if (workflow !== undefined) {
    const id = workflowIdFrom(workflow);
    found(await store.workflows.get({ teamId, id }), 'workflow_not_found');
    selection.narrowing.workflowId = id;
  }
  if (eventTypes !== undefined) selection.narrowing.eventTypes = eventTypes;
  if (status !== undefined) selection.narrowing.status = statusFrom(status, '`status`');
  return selection;
}
