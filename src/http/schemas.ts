/** The shapes that the published description names, as JSON Schema. */
import { KEY_CONCERNS, SCOPES } from '../model/team.ts';
import { auditLineSchema } from './audit-schema.ts';
import { jobSchema } from './extensions/shown-job.ts';
import { logLineSchema } from './extensions/shown-log-line.ts';
import { workflowSchema } from './extensions/shown-workflow.ts';
import { inspectorSchemas } from './inspector-schemas.ts';
import { isoTime } from './iso-time.ts';
import { systemSchemas } from './system-schemas.ts';
import { webhookSchemas } from './webhook-schemas.ts';

/** `components.schemas` of the description. */
export const schemas = {
  Error: {
    type: 'object',
    required: ['error'],
    properties: { error: { type: 'string', description: 'What is wrong, and what to do next' } },
    examples: [{ error: 'No workflow found' }],
    additionalProperties: false,
  },
  Message: {
    type: 'object',
    required: ['message'],
    properties: { message: { type: 'string' } },
    examples: [{ message: 'Job queued' }],
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
    examples: [{ id: '17', name: 'Ada Lovelace', email: 'ada@example.com' }],
    additionalProperties: true,
  },
  Webhook: {
    type: 'object',
    required: ['id', 'createdAt', 'url', 'events'],
    properties: {
      id: { type: 'string', description: 'Webhook identifier' },
      // The contract states no format.
      createdAt: { type: 'string', description: isoTime.description },
      url: { type: 'string', description: 'Callback URL' },
      events: { type: 'array', items: { type: 'string' }, description: 'The events subscribed to' },
    },
    examples: [
      {
        id: 'wh_01kadz8v3s7v0s8e1c3q5m2n4p',
        createdAt: '2026-11-21T02:00:00.000Z',
        url: 'https://example.com/hooks/people',
        events: ['workflow_finished', 'workflow_data_change'],
      },
    ],
    additionalProperties: false,
  },
  ...webhookSchemas,
  ...inspectorSchemas,
  ...systemSchemas,
  Change: {
    type: 'object',
    required: ['type', 'id', 'version'],
    properties: {
      type: { enum: ['added', 'changed', 'removed'] },
      id: { type: 'string', description: 'Record identifier' },
      version: { type: 'integer', description: 'The version that brought its last state' },
      record: { $ref: '#/components/schemas/Record', description: 'Of a record that was added' },
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
  Job: jobSchema,
  AuditLine: auditLineSchema,
  Key: {
    type: 'object',
    required: [
      'id',
      'name',
      'prefix',
      'scopes',
      'createdAt',
      'expiresAt',
      'revokedAt',
      'lastUsedAt',
      'concern',
    ],
    properties: {
      id: { type: 'string' },
      name: { type: 'string' },
      prefix: { type: 'string', description: 'How the key begins, to recognise it by' },
      scopes: { type: 'array', items: { enum: SCOPES } },
      createdAt: isoTime,
      expiresAt: { ...isoTime, type: ['string', 'null'], description: 'null: never' },
      revokedAt: { ...isoTime, type: ['string', 'null'] },
      lastUsedAt: {
        ...isoTime,
        type: ['string', 'null'],
        description: 'Written once a minute; null: never, since this is noted',
      },
      concern: {
        enum: [...KEY_CONCERNS, null],
        description:
          '`unused`: not used for 90 days; `expires_soon`: within 14 days, or the last fifth of its life',
      },
    },
  },
  LogLine: logLineSchema,
  Workflow: workflowSchema,
};

/** A JSON body of a request, which must be there unless told, as an OpenAPI request body. */
export function jsonBody(
  schema: object,
  { required = true, example }: { required?: boolean; example?: unknown } = {},
): object {
  const content = { schema, ...(example === undefined ? {} : { example }) };
  return { required, content: { 'application/json': content } };
}

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
