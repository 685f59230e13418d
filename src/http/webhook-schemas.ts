/** The shapes of webhooks, deliveries, replays and events, as JSON Schema. */
import { ATTEMPT_OUTCOMES, DELIVERY_ORIGINS, DELIVERY_STATES } from '../model/delivery.ts';
import { EVENT_TYPES, type EventType } from '../model/event.ts';
import { EVENT_CATALOGUE } from '../model/event-catalogue.ts';
import { WEBHOOK_STATES } from '../model/webhook.ts';
import { isoTime } from './iso-time.ts';

const headers = { type: 'object', additionalProperties: { type: 'string' } };
/** What an attempt came to. */
const outcome = {
  outcome: { enum: ATTEMPT_OUTCOMES },
  status: { type: ['integer', 'null'], description: 'Of the answer' },
  message: { type: 'string', description: 'The outcome in plain words' },
};
const delivery = {
  id: { type: 'string' },
  webhookId: { type: 'string' },
  eventId: { type: 'string' },
  eventType: { enum: EVENT_TYPES },
  origin: { enum: DELIVERY_ORIGINS },
  state: { enum: DELIVERY_STATES },
  attempt: { type: 'integer', description: 'Attempts made so far' },
  createdAt: isoTime,
  nextAttemptAt: { ...isoTime, type: ['string', 'null'], description: 'Of a delivery that is `waiting`' },
  lastAttempt: { type: ['object', 'null'], properties: { at: isoTime, ...outcome } },
};

export const webhookSchemas = {
  WebhookDetail: {
    type: 'object',
    required: ['id', 'workflowId', 'createdAt', 'url', 'events', 'state'],
    properties: {
      id: { type: 'string' },
      workflowId: { type: ['string', 'null'], description: 'null: every workflow of the team' },
      createdAt: isoTime,
      url: { type: 'string' },
      events: { type: 'array', items: { type: 'string' } },
      state: { enum: WEBHOOK_STATES },
      settings: {
        type: 'object',
        properties: {
          ordered: { type: 'boolean' },
          ratePerSecond: { type: ['number', 'null'], description: 'null: no limit' },
          timeoutMs: { type: 'integer' },
          headers: {
            type: ['array', 'null'],
            items: { type: 'string' },
            description:
              'Their names; never their values. null: they were sealed with another encryption key; set them anew',
          },
        },
      },
      pausedAt: { ...isoTime, type: ['string', 'null'] },
      pausedReason: { type: ['string', 'null'] },
      failingSince: {
        ...isoTime,
        type: ['string', 'null'],
        description: 'Since when every attempt has failed',
      },
      lastSuccessAt: { ...isoTime, type: ['string', 'null'], description: 'Accurate to a minute' },
    },
  },
  Delivery: { type: 'object', required: Object.keys(delivery), properties: delivery },
  DeliveryDetail: {
    type: 'object',
    required: [...Object.keys(delivery), 'event', 'attempts'],
    properties: {
      ...delivery,
      event: { $ref: '#/components/schemas/Event' },
      attempts: {
        type: 'array',
        description: 'Oldest first',
        items: {
          type: 'object',
          properties: {
            number: { type: 'integer' },
            startedAt: isoTime,
            durationMs: { type: 'number' },
            ...outcome,
            request: {
              type: ['object', 'null'],
              description: 'Without the values of headers that are secret',
              properties: { url: { type: 'string' }, headers },
            },
            response: {
              type: ['object', 'null'],
              properties: {
                headers,
                body: { type: ['string', 'null'], description: 'Its first 2 KiB' },
              },
            },
            remoteAddress: { type: ['string', 'null'] },
            timing: {
              type: ['object', 'null'],
              description:
                'Milliseconds: waiting in line, then from the start of the attempt until each was done',
              properties: {
                queuedMs: { type: 'number' },
                dnsMs: { type: ['number', 'null'] },
                connectMs: { type: ['number', 'null'] },
                tlsMs: { type: ['number', 'null'] },
                firstByteMs: { type: ['number', 'null'] },
              },
            },
          },
        },
      },
    },
  },
  Replay: {
    type: 'object',
    required: ['id', 'webhookId', 'state', 'states', 'since', 'until', 'made', 'createdAt'],
    properties: {
      id: { type: 'string' },
      webhookId: { type: 'string' },
      state: { enum: ['running', 'done'] },
      states: { type: 'array', items: { enum: DELIVERY_STATES } },
      since: isoTime,
      until: isoTime,
      made: { type: 'integer', description: 'Deliveries made so far' },
      createdAt: isoTime,
    },
  },
  Event: {
    description: 'Exactly what a webhook is sent',
    oneOf: EVENT_CATALOGUE.map(({ type }) => ({ $ref: `#/components/schemas/${eventSchemaName(type)}` })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(
        EVENT_CATALOGUE.map(({ type }) => [type, `#/components/schemas/${eventSchemaName(type)}`]),
      ),
    },
  },
  ...Object.fromEntries(EVENT_CATALOGUE.map(({ type, schema }) => [eventSchemaName(type), schema])),
};

/** `workflow_finished` → `WorkflowFinishedEvent`. */
export function eventSchemaName(type: EventType): string {
  const words = type.split('_').map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`);
  return `${words.join('')}Event`;
}
