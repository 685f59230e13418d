/** The shapes that the published description names, as JSON Schema. */

const isoTime = { type: 'string', description: 'ISO 8601 in UTC with milliseconds' };

/** `components.schemas` of the description. */
export const schemas = {
  Error: {
    type: 'object',
    required: ['error'],
    properties: { error: { type: 'string', description: 'What is wrong, and what to do next' } },
    additionalProperties: false,
  },
  Message: {
    type: 'object',
    required: ['message'],
    properties: { message: { type: 'string' } },
    additionalProperties: false,
  },
  Record: {
    type: 'object',
    description: 'A data record. A workflow may add other fields.',
    properties: {
      id: { type: 'string', description: 'Record identifier' },
      name: { type: 'string' },
      email: { type: 'string' },
    },
    additionalProperties: true,
  },
  Webhook: {
    type: 'object',
    required: ['id', 'createdAt', 'url', 'events'],
    properties: {
      id: { type: 'string', description: 'Webhook identifier' },
      createdAt: isoTime,
      url: { type: 'string', description: 'Callback URL' },
      events: { type: 'array', items: { type: 'string' }, description: 'The events subscribed to' },
    },
    additionalProperties: false,
  },
  WebhookDetail: {
    type: 'object',
    required: ['id', 'workflowId', 'createdAt', 'url', 'events', 'state'],
    properties: {
      id: { type: 'string' },
      workflowId: { type: ['string', 'null'], description: 'null: every workflow of the team' },
      createdAt: isoTime,
      url: { type: 'string' },
      events: { type: 'array', items: { type: 'string' } },
      state: { enum: ['active', 'paused'] },
    },
  },
  Change: {
    type: 'object',
    required: ['type', 'id', 'version'],
    properties: {
      type: { enum: ['added', 'changed', 'removed'] },
      id: { type: 'string', description: 'Record identifier' },
      version: { type: 'integer', description: 'The version that brought its last state' },
      record: { $ref: '#/components/schemas/Record' },
      fields: {
        type: 'array',
        description: 'Of a record that was changed or removed',
        items: {
          type: 'object',
          required: ['key'],
          properties: { key: { type: 'string' }, value: {}, previousValue: {} },
        },
      },
    },
  },
  Version: {
    type: 'object',
    required: ['number', 'jobId', 'publishedAt', 'records'],
    properties: {
      number: { type: 'integer' },
      jobId: { type: 'string', description: 'The job that published it' },
      publishedAt: isoTime,
      records: {
        type: 'object',
        properties: {
          total: { type: 'integer' },
          added: { type: 'integer' },
          changed: { type: 'integer' },
          removed: { type: 'integer' },
        },
      },
    },
  },
  Job: {
    type: 'object',
    properties: {
      id: { type: 'string' },
      workflowId: { type: 'string' },
      state: { enum: ['queued', 'running', 'retrying', 'finished', 'failed', 'canceled'] },
      origin: { enum: ['api', 'schedule', 'cli', 'push'] },
      attempt: { type: 'integer', description: 'Attempts started so far' },
      reason: { type: ['string', 'null'], description: 'Why it failed, or why its last attempt did' },
      error: { type: ['string', 'null'] },
      version: { type: ['integer', 'null'], description: 'The version that it published or found unchanged' },
      records: {
        type: ['object', 'null'],
        properties: {
          total: { type: 'integer' },
          added: { type: 'integer' },
          changed: { type: 'integer' },
          removed: { type: 'integer' },
        },
      },
      queuedAt: isoTime,
      startedAt: { ...isoTime, type: ['string', 'null'] },
      finishedAt: { ...isoTime, type: ['string', 'null'] },
    },
  },
} as const;

/** A JSON answer, as an OpenAPI response object. */
export function jsonResponse(
  description: string,
  schema: keyof typeof schemas | object,
  headers: Readonly<Record<string, string>> = {},
): object {
  return {
    description,
    ...(Object.keys(headers).length === 0
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, header(text)])) }),
    content: {
      'application/json': {
        schema: typeof schema === 'string' ? { $ref: `#/components/schemas/${schema}` } : schema,
      },
    },
  };
}

function header(description: string): object {
  return { description, schema: { type: 'string' } };
}
