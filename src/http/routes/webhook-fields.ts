/** The schemas of the fields of a webhook in requests. */
import { FIRST_VERSIONS, FORMATS, MAX_EXPRESSION } from '../../model/rule.ts';
import { MAX_DESCRIPTION, MAX_LABEL, MAX_LABELS, MAX_WEBHOOK_NAME } from '../../model/webhook.ts';
import { MAX_RATE, MAX_TIMEOUT_MS, MIN_RATE, MIN_TIMEOUT_MS } from '../../webhooks/change-webhook.ts';
import { eventsSchema } from './subscriptions.ts';

/** The schemas of the fields of a rule. */
export const RULE = {
  filter: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_EXPRESSION,
    description:
      'Expression in the Common Expression Language that decides which events, or which of their differences, are sent. ' +
      '`null` to send all',
    examples: ['fallsBy(previous.price, record.price, "5%")'],
  },
  format: {
    enum: [...FORMATS, null],
    description:
      'Form of the body: `standard`, `cloudevents` (CloudEvents 1.0, structured mode), `template`, a message for people ' +
      '(`slack`, `discord`, `teams`), or `mail`, which only `mailto:` has. `null` for `mail` if the URL is `mailto:`, ' +
      'otherwise `standard`',
  },
  template: {
    description: `JSON to send with the format \`template\`; \`\${…}\` in its strings holds expressions. At most 16 KiB. \`null\` for none`,
  },
  firstVersion: {
    enum: [...FIRST_VERSIONS, null],
    description:
      'Whether the first version of a workflow is sent. `null`: `skip` if the filter reads records, otherwise `send`',
  },
  cooldown: {
    type: ['string', 'null'],
    pattern: '^\\d{1,9}(s|m|h|d)$',
    description:
      'Time for which nothing more is sent about a record that was sent, from `1s` to `7d`. Requires a filter that reads ' +
      'records. `null` for no limit',
    examples: ['6h'],
  },
  digest: {
    type: ['object', 'null'],
    properties: {
      every: {
        type: 'string',
        pattern: '^\\d{1,9}(s|m|h|d)$',
        description: 'Length of a digest, from its first match: from `1m` to `7d`',
      },
      at: {
        type: 'string',
        pattern: '^([01]\\d|2[0-3]):[0-5]\\d$',
        description: 'Time of day when digests are sent',
      },
      timeZone: { type: 'string', description: 'IANA name of the time zone of `at` (default: `UTC`)' },
    },
    description:
      'Gathers what matches, and sends it in one message with the newest state of each record: either `every` or `at`. ' +
      'Not with a cooldown. `null` to send everything immediately',
    examples: [{ at: '08:00', timeZone: 'Europe/Zurich' }],
  },
  timeZone: {
    type: ['string', 'null'],
    description:
      'IANA name of the zone of times in messages for people. `null` for the zone of the digest, or UTC',
    examples: ['Europe/Zurich'],
  },
};
/** What people write about a webhook. */
export const TEXTS = {
  name: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_WEBHOOK_NAME,
    description: 'Name for people. `null` for none',
  },
  description: {
    type: ['string', 'null'],
    minLength: 1,
    maxLength: MAX_DESCRIPTION,
    description: 'Purpose of the webhook, for people. `null` for none',
  },
  labels: {
    type: 'array',
    maxItems: MAX_LABELS,
    uniqueItems: true,
    items: { type: 'string', minLength: 1, maxLength: MAX_LABEL },
    description: 'Words by which the list is filtered',
    examples: [['customer:acme']],
  },
};
export const DESTINATION_PATTERN = String.raw`^([hH][tT][tT][pP][sS]?://[^/?#\\\s][^\\\s]*|[mM][aA][iI][lL][tT][oO]:.+)$`;
export const namedEvents = {
  ...eventsSchema,
  description: 'Event names or aliases from `GET /v1/events/types`, or `*` for all',
};

export const settings = {
  type: 'object',
  minProperties: 1,
  properties: {
    ordered: {
      type: 'boolean',
      description:
        '`true` to send one delivery at a time, in the order of the events. A failing delivery then delays the ones after ' +
        'it',
    },
    ratePerSecond: {
      type: ['number', 'null'],
      minimum: MIN_RATE,
      maximum: MAX_RATE,
      description: 'Maximum number of requests per second. `null` if unlimited',
    },
    timeoutMs: {
      type: 'integer',
      minimum: MIN_TIMEOUT_MS,
      maximum: MAX_TIMEOUT_MS,
      description: 'Time limit of one attempt, in milliseconds',
    },
    headers: {
      type: ['object', 'null'],
      additionalProperties: { type: 'string' },
      description:
        'Headers to send with every delivery. Their values are never shown again. `null` to send none',
    },
  },
};
