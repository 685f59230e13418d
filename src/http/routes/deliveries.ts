/** Deliveries and replays: what was sent to a webhook, and sending it again. */

import { DELIVERY_STATES, type DeliveryState, NOT_ARRIVED } from '../../model/delivery.ts';
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
  idempotencyKeyFrom,
  idFrom,
  invalid,
  keyOfFields,
  keyOfPath,
  oneOf,
  timeFrom,
} from '../input/values.ts';
import { jsonBody, jsonResponse, requestTime } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { webhookOf } from './webhooks.ts';

const parameters = [pathParameter('deliveryId', 'Delivery id')];

/** GET /v1/integrations/webhooks/{webhookId}/deliveries */
export const listWebhookDeliveries = listOperation({
  id: 'listWebhookDeliveries',
  group: 'Integrations',
  summary: 'The deliveries of a webhook, newest first',
  name: 'deliveries',
  resource: deliveryResource,
  order: byId('before', 'dlv'),
  parameters: [pathParameter('webhookId', 'Webhook id')],
  filters: { states: choicesParameter('state', DELIVERY_STATES, 'Only in these states'), ...PERIOD },
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
  summary:
    'Shows one delivery: the event, what each attempt came to and where its time went, and the next try',
  parameters,
  answer: jsonResponse('The delivery', deliveryDetailResource),
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
  summary:
    'A command that sends the event to the webhook once more, from wherever it is run, with a signature of now',
  description:
    'What it sends is not counted here as an attempt. The values of headers that the webhook has of its own, and of ' +
    'a password in its URL, are never shown: `***` stands there.',
  parameters,
  answer: jsonResponse('The command', deliveryCommandResource),
  errors: { delivery_not_found: 'No delivery found, or its webhook is gone' },

  async handle(call) {
    return deliveryCommand(call.services.webhooks, keyOfPath(call, 'dlv'));
  },
};

/** POST /v1/deliveries/{deliveryId}/replay */
export const replayDelivery: Operation<KeyedCall> = {
  id: 'replayDelivery',
  group: 'Integrations',
  summary: 'Sends the same event to the same webhook once more, now',
  description:
    'If the event still waits for this webhook, that delivery becomes due at once, which counts as its next attempt; ' +
    'else it is sent in a new delivery. A webhook that is held back because its endpoint fails is tried at once; one ' +
    'that is paused is not.',
  parameters: [...parameters, IDEMPOTENCY_KEY],
  answer: jsonResponse(
    'It is on its way; `message` says if something holds it back',
    object({
      message: text(),
      deliveryId: text('The delivery that sends it'),
      retried: boolean('Whether a delivery still waited for the event, so that no new one was made'),
      attempt: integer('How many attempts it has had already'),
    }),
    { location: 'Where that delivery can be read' },
  ),
  errors: {
    field_invalid: 'The header `idempotency-key` is empty or too long',
    delivery_not_found: 'No delivery found, or its webhook is gone',
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
const FORMS = 'Give either `deliveryIds`, or `since` with optional `until`, `states` and `dryRun`';

/** POST /v1/integrations/webhooks/{webhookId}/replay */
export const replayDeliveries: Operation<KeyedCall> = {
  id: 'replayWebhookDeliveries',
  group: 'Integrations',
  summary: 'Sends deliveries once more: those that are named, or all that have not arrived since a time',
  description:
    'A delivery that still waits becomes due at once; of any other the event is sent in a new delivery. Receivers see ' +
    'the `webhook-id` they know, and no event that waits is sent twice. A selection by time goes on in the ' +
    'background, throttled, in the order of the events, also over a restart; new events go first. What failed and ' +
    'has since been delivered is left out of it.',
  parameters: [pathParameter('webhookId', 'Webhook id'), IDEMPOTENCY_KEY],
  requestBody: jsonBody({
    oneOf: [
      {
        type: 'object',
        required: ['deliveryIds'],
        properties: {
          deliveryIds: { type: 'array', minItems: 1, maxItems: MAX_NAMED, items: DELIVERY_ID },
        },
      },
      {
        type: 'object',
        required: ['since'],
        properties: {
          since: { ...requestTime, description: 'Of the deliveries that were created at this time or later' },
          until: { ...requestTime, description: 'And at this time or earlier; now, unless told' },
          states: {
            type: 'array',
            minItems: 1,
            items: { enum: DELIVERY_STATES },
            default: NOT_ARRIVED,
            description: 'Those in these states: by default all that have not arrived',
          },
          dryRun: { type: 'boolean', default: false, description: 'Only count what it would send' },
        },
      },
    ],
  }),
  answer: jsonResponse(
    'They are on their way, or will be',
    object({
      message: text(),
      deliveryIds: optional(
        list(
          text(),
          'The deliveries that send them, in the order of those named: the ones that still wait for the events, ' +
            'else new ones. All of them, or it is refused',
        ),
      ),
      replay: optional(replayResource),
      plan: optional(as('With `dryRun`: what it would send. Nothing was sent', replayPlanResource)),
    }),
    { location: 'Of a selection by time: where the replay can be read' },
  ),
  errors: {
    field_invalid: 'A field is not valid',
    webhook_not_found: 'No webhook found, or it has no such delivery',
    idempotency_key_reused: 'The `idempotency-key` came with another body before',
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
  summary: 'How far a replay is',
  parameters: [pathParameter('webhookId', 'Webhook id'), pathParameter('replayId', 'Replay id')],
  answer: jsonResponse('The replay', replayResource),
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
  if (since > until) invalid('`since` must not be after `until`, which is now unless told');
  const states = statesFrom(fields.states);
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
    message: sentences(
      `Replay ${replay.id} has begun; GET ${location} says how far it is and what arrived`,
      held,
    ),
    replay: shownReplay(replay, await replayOutcome(store, replay)),
  };
}

function idsFrom(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_NAMED) {
    return invalid(`\`deliveryIds\` must be an array of 1 to ${MAX_NAMED} ids`);
  }
  const bad = value.findIndex((id) => typeof id !== 'string' || id === '');
  if (bad !== -1) return invalid(`\`deliveryIds[${bad}]\` must be the id of a delivery`);
  return [...new Set(value.map((id: string) => idFrom('dlv', id)))];
}

function statesFrom(value: unknown): DeliveryState[] {
  if (value === undefined) return [...NOT_ARRIVED];
  if (!Array.isArray(value) || value.length === 0) {
    return invalid(`\`states\` must be an array of ${DELIVERY_STATES.join(', ')}, or be left out`);
  }
  return [...new Set(value.map((name, at) => oneOf(`\`states[${at}]\``, name, DELIVERY_STATES)))];
}
