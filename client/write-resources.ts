/**
 * Generates `src/resources.ts`, the types of the API, from `openapi.json`: `npm run reference`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  description?: string;
  enum?: readonly unknown[];
  const?: unknown;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  oneOf?: readonly Schema[];
}

const FILE = join(import.meta.dirname, 'src', 'resources.ts');
const HEAD = `/**
 * Types of the API, generated from its OpenAPI document by client/write-resources.ts. Times are ISO 8601 in UTC with
 * milliseconds.
 */
`;
/** Names in the client for schemas whose own names would be less clear. */
const NAMES: Readonly<Record<string, string>> = {
  Record: 'DataRecord',
  Event: 'FlowhookEvent',
  AcceptQuarantineResult: 'QuarantineAccepted',
  CountJobsResult: 'JobCounts',
  CreateFeedRequest: 'NewFeed',
  CreateKeyResult: 'MadeKey',
  CreateWebhookRequest: 'NewWebhook',
  CreateWebhookRequestSettings: 'WebhookSettings',
  ErasePersonResult: 'ErasureReport',
  DropQuarantineResult: 'QuarantineDropped',
  EventTypeListType: 'EventKind',
  PushWorkflowRecordsResult: 'PushResult',
  SystemChecksFinding: 'SystemFinding',
  UpdateFeedRequest: 'FeedChanges',
  UpdateInspectorRequest: 'InspectorAnswer',
  UpdateWebhookRequest: 'WebhookChanges',
  WorkflowRecentJob: 'JobGlance',
};
const ROOTS = [
  ...Object.keys(NAMES),
  ...[
    'AuditLine',
    'Change',
    'Decision',
    'Delivery',
    'DeliveryCommand',
    'DeliveryDetail',
    'Feed',
    'InspectedRequest',
    'Inspector',
  ],
  ...[
    'Job',
    'JobLogs',
    'Key',
    'LogLine',
    'Me',
    'Replay',
    'ReplayDeliveryResult',
    'ReplayPlan',
    'Retry',
    'RetryPlan',
    'SearchResult',
    'SigningKey',
  ],
  ...[
    'Profile',
    'RecordChange',
    'QuarantinedRecord',
    'QuarantinedRecordBeside',
    'RotateWebhookSecretResult',
    'System',
    'SystemChecks',
    'TestWebhookResult',
    'TryWebhookRequest',
    'TryWebhookResult',
    'Usage',
    'Version',
  ],
  ...['Webhook', 'WebhookDetail', 'Workflow', 'WorkflowDefinition'],
];

export function resourceTypes(): string {
  const document = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'openapi.json'), 'utf8'));
  const schemas: Record<string, Schema> = document.components.schemas;
  // The contract promises an `id`, but its schema does not require it.
  schemas.Record = { ...schemas.Record, required: ['id'] };
  const used = new Set<string>();
  const use = (name: string) => {
    if (used.has(name)) return;
    used.add(name);
    for (const [, other = ''] of JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      use(other);
  };
  ROOTS.forEach(use);
  const declared = Object.entries(schemas).filter(([name]) => used.has(name));
  return HEAD + declared.map(([name, schema]) => declaration(nameOf(name), schema)).join('');
}

function declaration(name: string, schema: Schema): string {
  const comment = commentOf(schema, '');
  // These properties are added for all event types, so that `event.jobId` can be read before the type is known.
  const more = name === 'FlowhookEvent' ? ' & { workflowId?: string; jobId?: string }' : '';
  const type = more === '' ? typeOf(schema) : `(${typeOf(schema)})${more}`;
  if (schema.properties === undefined) return `\n${comment}export type ${name} = ${type};\n`;
  const fields = Object.entries(schema.properties).map(([key, field]) => {
    const mark = schema.required?.includes(key) ? '' : '?';
    return `${commentOf(field, '  ')}  ${key}${mark}: ${typeOf(field)};\n`;
  });
  if (schema.additionalProperties === true) fields.push('  [field: string]: unknown;\n');
  return `\n${comment}export interface ${name} {\n${fields.join('')}}\n`;
}

function typeOf(schema: Schema): string {
  const { $ref, oneOf, type, items, additionalProperties } = schema;
  if ($ref !== undefined) return nameOf($ref.split('/').at(-1) ?? '');
  if (oneOf !== undefined) return oneOf.map(typeOf).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (Array.isArray(type)) return type.map((one) => typeOf({ ...schema, type: one })).join(' | ');
  switch (type) {
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'array': {
      const item = typeOf(items ?? {});
      return item.includes(' ') ? `(${item})[]` : `${item}[]`;
    }
    case 'object':
      return `Record<string, ${typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'}>`;
    default:
      return 'unknown';
  }
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function nameOf(name: string): string {
  return NAMES[name] ?? name;
}

/** No comment for times, which the head of the file describes. */
function commentOf({ description }: Schema, indent: string): string {
  if (description === undefined || description === 'ISO 8601 in UTC with milliseconds') return '';
  return `${indent}/** ${description}${/[.?!]$/.test(description) ? '' : '.'} */\n`;
}

if (import.meta.main) writeFileSync(FILE, resourceTypes());
