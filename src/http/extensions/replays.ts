/** Replays: sending deliveries of a webhook again, by id or by state since a time. */
import { DELIVERY_STATES, type DeliveryState } from '../../model/delivery.ts';
import { Problem } from '../../model/error.ts';
import { bodyFields } from '../body.ts';
import { IDEMPOTENCY_KEY, keyOfFields } from '../idempotency-key.ts';
import { isGeneratedId } from '../ids.ts';
import { jsonBody, jsonResponse, requestTime } from '../openapi/content.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { invalid, oneOf, timeFrom } from '../values.ts';
import { shownReplay } from './shown-delivery.ts';
import { webhookIdFrom, webhookOf } from './webhooks.ts';

const MAX_NAMED = 100;
const DEFAULT_STATES: readonly DeliveryState[] = ['dead'];
const FORMS = 'Give either `deliveryIds`, or `since` with optional `until` and `states`';

/** POST /v1/integrations/webhooks/{webhookId}/replay */
export const replayDeliveries: Operation<KeyedCall> = {
  id: 'replayWebhookDeliveries',
  group: 'Integrations',
  summary: 'Sends deliveries once more: those that are named, or all of some states since a time',
  description:
    'Every one is a new delivery of the same event, so receivers see the `webhook-id` they know. A selection by ' +
    'time goes on in the background, throttled, also over a restart; new events go first. What failed and has since ' +
    'been delivered by another replay, or waits in one, is left out of it.',
  parameters: [pathParameter('webhookId', 'Webhook id'), IDEMPOTENCY_KEY],
  requestBody: jsonBody({
    oneOf: [
      {
        type: 'object',
        required: ['deliveryIds'],
        properties: {
          deliveryIds: { type: 'array', minItems: 1, maxItems: MAX_NAMED, items: { type: 'string' } },
        },
      },
      {
        type: 'object',
        required: ['since'],
        properties: {
          since: requestTime,
          until: { ...requestTime, description: 'Now, unless told' },
          states: { type: 'array', items: { enum: DELIVERY_STATES }, default: DEFAULT_STATES },
        },
      },
    ],
  }),
  answer: jsonResponse(
    'They are on their way, or will be',
    {
      type: 'object',
      required: ['message'],
      properties: {
        message: { type: 'string' },
        deliveryIds: {
          type: 'array',
          items: { type: 'string' },
          description: 'The new deliveries, in the order of those named: all of them, or it is refused',
        },
        replay: { $ref: '#/components/schemas/Replay' },
      },
    },
    { location: 'Of a selection by time: where the replay can be read' },
  ),
  refusals: {
    field_invalid: 'A field is not valid',
    webhook_not_found: 'No webhook found, or it has no such delivery',
    idempotency_key_reused: 'The `idempotency-key` came with another body before',
  },

  async handle(call) {
    const fields = await bodyFields(call, 'a JSON object with `deliveryIds`, or with `since`');
    const named = fields.deliveryIds !== undefined;
    const selected = ['since', 'until', 'states'].some((name) => fields[name] !== undefined);
    if (named === selected) invalid(FORMS);
    return named ? replayNamed(call, fields) : replaySelection(call, fields);
  },
};

/** GET /v1/integrations/webhooks/{webhookId}/replays/{replayId} */
export const readReplay: Operation<KeyedCall> = {
  id: 'readReplay',
  group: 'Integrations',
  summary: 'How far a replay is',
  parameters: [pathParameter('webhookId', 'Webhook id'), pathParameter('replayId', 'Replay id')],
  answer: jsonResponse('The replay', 'Replay'),
  refusals: { replay_not_found: 'No replay found' },

  async handle({ services, caller, params }) {
    const { replayId: id, webhookId } = params;
    const replay = isGeneratedId('rpl', id)
      ? await services.store.deliveries.getReplay({ teamId: caller.teamId, id })
      : undefined;
    if (replay === undefined || replay.webhookId !== webhookId) throw new Problem('replay_not_found');
    return shownReplay(replay);
  },
};

async function replayNamed(call: KeyedCall, fields: Record<string, unknown>): Promise<object> {
  const { store } = call.services;
  const ids = idsFrom(fields.deliveryIds);
  const idempotencyKey = keyOfFields(call, fields);
  const { teamId, id: webhookId } = await webhookOf(call);
  const deliveryIds = await store.deliveries.replay({
    teamId,
    webhookId,
    ids,
    idempotencyKey,
  });
  if (deliveryIds === undefined) throw new Problem('delivery_not_found');
  return { message: 'On their way once more', deliveryIds };
}

async function replaySelection(call: KeyedCall, fields: Record<string, unknown>): Promise<object> {
  const { services, caller, params, reply } = call;
  if (fields.since === undefined) invalid(FORMS);
  const since = timeFrom(fields.since, '`since`');
  const until = fields.until === undefined ? services.store.now() : timeFrom(fields.until, '`until`');
  if (since > until) invalid('`since` must not be after `until`, which is now unless told');
  const states = statesFrom(fields.states);
  const webhookId = webhookIdFrom(params.webhookId);
  const replay = await services.store.deliveries.startReplay({
    teamId: caller.teamId,
    webhookId,
    states,
    since,
    until,
    idempotencyKey: keyOfFields(call, fields),
  });
  if (replay === undefined) throw new Problem('webhook_not_found');
  const location = `/v1/integrations/webhooks/${webhookId}/replays/${replay.id}`;
  reply.header('location', location);
  return {
    message: `Replay ${replay.id} has begun; GET ${location} says how far it is`,
    replay: shownReplay(replay),
  };
}

function idsFrom(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_NAMED) {
    return invalid(`\`deliveryIds\` must be an array of 1 to ${MAX_NAMED} ids`);
  }
  const bad = value.findIndex((id) => typeof id !== 'string' || id === '');
  if (bad !== -1) return invalid(`\`deliveryIds[${bad}]\` must be the id of a delivery`);
  if (!value.every((id) => isGeneratedId('dlv', id))) throw new Problem('delivery_not_found');
  return [...new Set(value as string[])];
}

function statesFrom(value: unknown): DeliveryState[] {
  if (value === undefined) return [...DEFAULT_STATES];
  if (!Array.isArray(value) || value.length === 0) {
    return invalid(`\`states\` must be an array of ${DELIVERY_STATES.join(', ')}, or be left out`);
  }
  return [...new Set(value.map((name, at) => oneOf(`\`states[${at}]\``, name, DELIVERY_STATES)))];
}
