/** Deliveries and their replays. */

import { DELIVERY_STATES, NOT_ARRIVED } from '../../model/delivery.ts';
import { found, Problem } from '../../model/error.ts';
import {
  deliveryCommandResource,
  deliveryDetailResource,
  deliveryResource,
  replayPlanResource,
  replayResource,
  shownDelivery,
  shownDeliveryDetail,
  shownReplay,
} from '../../resources/delivery.ts';
import { as, boolean, integer, list, object, optional, text } from '../../std/shape.ts';
import { deliveryCommand } from '../../webhooks/curl.ts';
import {
  planReplay,
  planWords,
  replayOutcome,
  sentAgainWords,
  sentences,
  whatHoldsBack,
} from '../../webhooks/replay.ts';
import { sendWithETag } from '../caching.ts';
import { bodyFields } from '../input/body.ts';
import { byId, listOperation, PERIOD } from '../input/list-page.ts';
import { choicesParameter } from '../input/query.ts';
import {
  IDEMPOTENCY_KEY,
  IDEMPOTENCY_KEY_WITHOUT_BODY,
  idempotencyKeyFrom,
  idFrom,
  invalid,
  keyOfFields,
  keyOfPath,
  namesFrom,
  timeFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, requestTime } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { webhookOf } from './webhooks.ts';

const parameters = [pathParameter('deliveryId', 'Delivery ID')];

/** GET /v1/integrations/webhooks/{webhookId}/deliveries */
export const listWebhookDeliveries = listOperation({
  id: 'listWebhookDeliveries',
  group: 'Integrations',
  summary: 'List deliveries of a webhook',
  description: 'Returns the newest deliveries first.',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [pathParameter('webhookId', 'Webhook ID')],
  filters: { states: choicesParameter('state', DELIVERY_STATES, 'Filter by state'), ...PERIOD },
  errors: { webhook_not_found: 'No webhook found' },
  async rows(call, range) {
    const { teamId, id: webhookId } = await webhookOf(call);
    return call.services.store.deliveries.list({ teamId, webhookId, ...range });
  },
  show: shownDelivery,
});

/** GET /v1/deliveries/{deliveryId} */
export const readDelivery: Operation<KeyedCall> = {
  id: 'readDelivery',
  group: 'Integrations',
  etag: true,
  summary: 'Read a delivery',
  description:
    'Returns the event, the outcome and timings of each attempt, and the time of the next attempt.',
  parameters,
  answer: jsonResponse('Delivery', deliveryDetailResource),
  errors: { delivery_not_found: 'No delivery found' },

  async handle(call) {
    const delivery = await call.services.store.deliveries.get(keyOfPath(call, 'dlv'));
    return sendWithETag(call, JSON.stringify(shownDeliveryDetail(found(delivery, 'delivery_not_found'))));
  },
};

/** GET /v1/deliveries/{deliveryId}/curl */
export const readDeliveryCommand: Operation<KeyedCall<'webhooks'>> = {
  id: 'readDeliveryCommand',
  group: 'Integrations',
  summary: 'Get a curl command for a delivery',
  description:
    'Returns a shell command that sends the event to the webhook again, with a new signature. Flowhook does not count ' +
    'that request as an attempt. `***` replaces the values of custom headers, and of `authorization` if the URL contains a ' +
    'password.',
  parameters,
  answer: jsonResponse('Shell command', deliveryCommandResource),
  errors: {
    delivery_not_found: 'No delivery found, or its webhook was unsubscribed',
    field_invalid: 'The delivery is a mail',
  },

  async handle(call) {
    return deliveryCommand(call.services.webhooks, keyOfPath(call, 'dlv'));
  },
};

/** POST /v1/deliveries/{deliveryId}/replay */
export const replayDelivery: Operation<KeyedCall> = {
  id: 'replayDelivery',
  group: 'Integrations',
  summary: 'Replay a delivery',
  description:
    'Sends the event to the same webhook again. If a delivery of the event is still waiting, it becomes due ' +
    'immediately, and the request counts as its next attempt; otherwise a new delivery is created. The ' +
    'request is sent immediately even while the webhook is held back because its endpoint fails, but not ' +
    'while the webhook is paused.',
  parameters: [...parameters, IDEMPOTENCY_KEY_WITHOUT_BODY],
  answer: jsonResponse(
    'Delivery queued. `message` says whether the webhook is held back',
    object({
      message: text(),
      deliveryId: text('ID of the delivery that sends the event'),
      retried: boolean('`true` if a waiting delivery was used instead of creating a new one'),
      attempt: integer('Number of attempts that the delivery has already had'),
    }),
    { location: 'URL of the delivery' },
  ),
  errors: {
    field_invalid: 'The header `idempotency-key` is empty or too long',
    delivery_not_found: 'No delivery found, or its webhook was unsubscribed',
  },

  async handle(call) {
    const { store } = call.services;
    const idempotencyKey = idempotencyKeyFrom(call);
    const { teamId, id } = keyOfPath(call, 'dlv');
    const before = found(await store.deliveries.get({ teamId, id }), 'delivery_not_found');
    const made = await store.deliveries.replay({ teamId, ids: [id], idempotencyKey });
    const again = found(made?.[0], 'delivery_not_found');
    const webhook = await store.webhooks.get({ teamId, id: before.webhookId });
    const { id: deliveryId, attempt } = again;
    call.reply.header('location', `/v1/deliveries/${deliveryId}`);
    const retried = !again.isNew;
    const message = sentences(
      sentAgainWords({ asked: 1, retried: retried ? 1 : 0 }),
      webhook === undefined ? null : whatHoldsBack(webhook, store.now()),
    );
    return { message, deliveryId, retried, attempt };
  },
};

const MAX_NAMED = 100;
const DELIVERY_ID = { type: 'string', pattern: '^dlv_[0-9a-z]+$' };
const FORMS = 'Send either `deliveryIds`, or `since` with optional `until`, `states` and `dryRun`';

/** POST /v1/integrations/webhooks/{webhookId}/replay */
export const replayDeliveries: Operation<KeyedCall> = {
  id: 'replayWebhookDeliveries',
  group: 'Integrations',
  summary: 'Replay deliveries of a webhook',
  description:
    'Sends deliveries again: either those in `deliveryIds` (all of them or none), or those of a period ' +
    '(default: all deliveries of the period that have not arrived). A waiting delivery becomes due ' +
    'immediately. For any other delivery, a new delivery is created. Events keep their `webhook-id`, and an ' +
    'event whose delivery is waiting is not sent twice. The replay of a period runs in the background, ' +
    'throttled, in the order of the events; it survives restarts, and new events take precedence. Events ' +
    'that have been delivered since their failure are skipped.',
  parameters: [pathParameter('webhookId', 'Webhook ID'), IDEMPOTENCY_KEY],
  requestBody: jsonBody({
    oneOf: [
      {
        title: 'ReplayByIdRequest',
        type: 'object',
        required: ['deliveryIds'],
        properties: {
          deliveryIds: { type: 'array', minItems: 1, maxItems: MAX_NAMED, items: DELIVERY_ID },
        },
      },
      {
        title: 'ReplayByPeriodRequest',
        type: 'object',
        required: ['since'],
        properties: {
          since: { ...requestTime, description: 'Only deliveries created at or after this time' },
          until: {
            ...requestTime,
            description: 'Only deliveries created at or before this time (default: now)',
          },
          states: {
            type: 'array',
            minItems: 1,
            items: { enum: DELIVERY_STATES },
            default: NOT_ARRIVED,
            description: 'Only deliveries in these states (default: all that have not arrived)',
          },
          dryRun: {
            type: 'boolean',
            default: false,
            description: '`true` to count the events without sending them',
          },
        },
      },
    ],
  }),
  answer: jsonResponse(
    'Deliveries queued, replay started, or events counted',
    object({
      message: text(),
      deliveryIds: optional(
        list(
          text(),
          'IDs of the deliveries that send the events, in the order of the request. A waiting delivery keeps ' +
            'its ID; any other is replaced by a new delivery',
        ),
      ),
      replay: optional(replayResource),
      plan: optional(as('Preview of the replay, with `dryRun`. Nothing was sent', replayPlanResource)),
    }),
    { location: 'URL of the replay, for the replay of a period' },
  ),
  errors: {
    field_invalid: 'A field is not valid',
    webhook_not_found: 'No webhook found, or a delivery does not belong to this webhook',
    idempotency_key_reused: '`idempotency-key` already used with a different body',
  },

  async handle(call) {
    const fields = await bodyFields(call, 'a JSON object with `deliveryIds`, or with `since`');
    const { deliveryIds, since, until, states, dryRun } = fields;
    const isSelection = [since, until, states, dryRun].some((field) => field !== undefined);
    if ((deliveryIds !== undefined) === isSelection) invalid(FORMS);
    return isSelection ? replaySelection(call, fields) : replayNamed(call, fields);
  },
};

/** GET /v1/integrations/webhooks/{webhookId}/replays/{replayId} */
export const readReplay: Operation<KeyedCall> = {
  id: 'readReplay',
  group: 'Integrations',
  summary: 'Read a replay',
  description: 'Returns the progress of a replay and the results of its deliveries.',
  parameters: [pathParameter('webhookId', 'Webhook ID'), pathParameter('replayId', 'Replay ID')],
  answer: jsonResponse('Replay', replayResource),
  errors: { replay_not_found: 'No replay found' },

  async handle(call) {
    const { store } = call.services;
    const replay = found(await store.deliveries.getReplay(keyOfPath(call, 'rpl')), 'replay_not_found');
    if (replay.webhookId !== call.params.webhookId) throw new Problem('replay_not_found');
    return shownReplay(replay, await replayOutcome(store, replay));
  },
};

async function replayNamed(call: KeyedCall, fields: Record<string, unknown>): Promise<object> {
  const { store } = call.services;
  const ids = idsFrom(fields.deliveryIds);
  const idempotencyKey = keyOfFields(call, fields);
  const webhook = await webhookOf(call);
  const { teamId, id: webhookId } = webhook;
  const replayed = await store.deliveries.replay({ teamId, webhookId, ids, idempotencyKey });
  const made = found(replayed, 'delivery_not_found');
  const retried = made.filter(({ isNew }) => !isNew).length;
  const message = sentences(
    sentAgainWords({ asked: ids.length, retried }),
    whatHoldsBack(webhook, store.now()),
  );
  return { message, deliveryIds: made.map(({ id }) => id) };
}

async function replaySelection(call: KeyedCall, fields: Record<string, unknown>): Promise<object> {
  const { services, reply } = call;
  const { store } = services;
  const { dryRun } = fields;
  if (dryRun !== undefined && typeof dryRun !== 'boolean') invalid('`dryRun` must be true or false');
  if (fields.since === undefined) invalid(FORMS);
  const since = timeFrom(fields.since, '`since`');
  const until = fields.until === undefined ? store.now() : timeFrom(fields.until, '`until`');
  if (since > until) invalid('`since` must not be after `until` (default: now)');
  const states = namesFrom(fields.states, 'states', DELIVERY_STATES) ?? [...NOT_ARRIVED];
  const webhook = await webhookOf(call);
  const { teamId, id: webhookId } = webhook;
  const selection = { teamId, webhookId, states, since, until };
  const held = whatHoldsBack(webhook, store.now());
  if (dryRun === true) {
    const plan = await planReplay(store, selection);
    return {
      message: sentences(planWords(plan), plan.count === 0 ? null : held),
      plan: replayPlanResource.of(plan),
    };
  }
  const idempotencyKey = keyOfFields(call, fields);
  const started = await store.deliveries.startReplay({ ...selection, idempotencyKey });
  const replay = found(started, 'webhook_not_found');
  const location = `/v1/integrations/webhooks/${webhookId}/replays/${replay.id}`;
  reply.header('location', location);
  return {
    message: sentences(`Replay ${replay.id} started. GET ${location} returns its progress`, held),
    replay: shownReplay(replay, await replayOutcome(store, replay)),
  };
}

function idsFrom(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_NAMED) {
    return invalid(`\`deliveryIds\` must be an array of 1 to ${MAX_NAMED} IDs`);
  }
  const bad = value.findIndex((id) => typeof id !== 'string' || id === '');
  if (bad !== -1) return invalid(`\`deliveryIds[${bad}]\` must be the ID of a delivery`);
  return [...new Set(value.map((id: string) => idFrom('dlv', id)))];
}
