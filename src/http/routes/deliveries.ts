/** Deliveries: listing those of a webhook, reading one with its attempts or as a `curl` command, replaying one. */

import { DELIVERY_STATES } from '../../model/delivery.ts';
import { Problem } from '../../model/error.ts';
import {
  deliveryCommandResource,
  deliveryDetailResource,
  deliveryResource,
  shownDelivery,
  shownDeliveryDetail,
} from '../../resources/delivery.ts';
import { boolean, integer, object, text } from '../../std/shape.ts';
import { deliveryCommand } from '../../webhooks/curl.ts';
import { sentAgainWords, sentences, whatHoldsBack } from '../../webhooks/send-again.ts';
import { sendWithETag } from '../caching.ts';
import { idCursorFrom } from '../cursor.ts';
import { IDEMPOTENCY_KEY, idempotencyKeyFrom } from '../idempotency-key.ts';
import { isGeneratedId } from '../ids.ts';
import { idCursor, onePage, PERIOD_PARAMETERS, pageLimit, pageParameters } from '../list-page.ts';
import { jsonResponse, pageResponse } from '../openapi/content.ts';
import { namesSchema, queryNames, queryPeriod } from '../query.ts';
import { type KeyedCall, type Operation, pathParameter } from '../route.ts';
import { webhookOf } from './webhooks.ts';

const parameters = [pathParameter('deliveryId', 'Delivery id')];

/** GET /v1/integrations/webhooks/{webhookId}/deliveries */
export const listWebhookDeliveries: Operation<KeyedCall> = {
  id: 'listWebhookDeliveries',
  group: 'Integrations',
  summary: 'The deliveries of a webhook, newest first',
  parameters: [
    pathParameter('webhookId', 'Webhook id'),
    {
      name: 'state',
      in: 'query',
      description: `Only in these states, with commas between: ${DELIVERY_STATES.join(', ')}`,
      schema: namesSchema(DELIVERY_STATES),
    },
    ...PERIOD_PARAMETERS,
    ...pageParameters(),
  ],
  answer: pageResponse('deliveries', deliveryResource),
  refusals: { field_invalid: 'A parameter has a bad value', webhook_not_found: 'No webhook found' },

  async handle(call) {
    const { query, services } = call;
    const states = queryNames(query, 'state', DELIVERY_STATES);
    const period = queryPeriod(query);
    const limit = pageLimit(query);
    const before = idCursorFrom(query, (text) => isGeneratedId('dlv', text));
    const { teamId, id } = await webhookOf(call);
    const found = await services.store.deliveries.list({
      teamId,
      webhookId: id,
      ...(states === undefined ? {} : { states }),
      ...period,
      ...(before === undefined ? {} : { before }),
      limit: limit + 1,
    });
    const path = `/v1/integrations/webhooks/${id}/deliveries`;
    const page = onePage(call, found, { limit, path, cursorOf: idCursor });
    return { deliveries: page.map(shownDelivery) };
  },
};

/** GET /v1/deliveries/{deliveryId} */
export const readDelivery: Operation<KeyedCall> = {
  id: 'readDelivery',
  group: 'Integrations',
  tagged: true,
  summary:
    'Shows one delivery: the event, what each attempt came to and where its time went, and the next try',
  parameters,
  answer: jsonResponse('The delivery', deliveryDetailResource),
  refusals: { delivery_not_found: 'No delivery found' },

  async handle(call) {
    const { services, caller, params } = call;
    const id = deliveryIdFrom(params.deliveryId);
    const delivery = await services.store.deliveries.get({ teamId: caller.teamId, id });
    if (delivery === undefined) throw new Problem('delivery_not_found');
    return sendWithETag(call, JSON.stringify(shownDeliveryDetail(delivery)));
  },
};

/** GET /v1/deliveries/{deliveryId}/curl */
export const readDeliveryCommand: Operation<KeyedCall> = {
  id: 'readDeliveryCommand',
  group: 'Integrations',
  summary:
    'A command that sends the event to the webhook once more, from wherever it is run, with a signature of now',
  description:
    'What it sends is not counted here as an attempt. The values of headers that the webhook has of its own, and of ' +
    'a password in its URL, are never shown: `***` stands there.',
  parameters,
  answer: jsonResponse('The command', deliveryCommandResource),
  refusals: { delivery_not_found: 'No delivery found, or its webhook is gone' },

  async handle({ services: { webhooks }, caller: { teamId }, params }) {
    return deliveryCommand(webhooks, { teamId, id: deliveryIdFrom(params.deliveryId) });
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
  refusals: {
    field_invalid: 'The header `idempotency-key` is empty or too long',
    delivery_not_found: 'No delivery found, or its webhook is gone',
  },

  async handle(call) {
    const {
      services: { store },
      caller: { teamId },
      params,
      reply,
    } = call;
    const idempotencyKey = idempotencyKeyFrom(call);
    const id = deliveryIdFrom(params.deliveryId);
    const before = await store.deliveries.get({ teamId, id });
    const made = await store.deliveries.replay({
      teamId,
      ids: [id],
      idempotencyKey,
    });
    const again = made?.[0];
    if (again === undefined || before === undefined) throw new Problem('delivery_not_found');
    const webhook = await store.webhooks.get({ teamId, id: before.webhookId });
    const { id: deliveryId, attempt } = again;
    reply.header('location', `/v1/deliveries/${deliveryId}`);
    const retried = !again.isNew;
    const message = sentences(
      sentAgainWords({ asked: 1, retried: retried ? 1 : 0 }),
      webhook === undefined ? null : whatHoldsBack(webhook, store.now()),
    );
    return { message, deliveryId, retried, attempt };
  },
};

/** @throws Problem `delivery_not_found` when it cannot be the id of a delivery */
function deliveryIdFrom(text: string | undefined): string {
  if (!isGeneratedId('dlv', text)) throw new Problem('delivery_not_found');
  return text;
}
