/** Generates the reference of all events from their catalog. */
import { aliasesOf } from '../../src/model/event.ts';
import { EVENT_CATALOG, type EventKind } from '../../src/model/event-catalog.ts';
import { table } from './table.ts';

const HEAD = `# Events

Every type of event: when it occurs, what its \`data\` holds, and a complete body as a webhook receives it. Generated from
\`src/model/event-catalog.ts\`; \`GET /v1/events/types\` returns the same with a JSON Schema for each.

The events of a job come in this order: queued, started, data_change (only if something changed), then finished, failed or
canceled. Every body also has these fields:
`;

interface Schema {
  type?: string | string[];
  const?: string;
  enum?: string[];
  format?: string;
  description?: string;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** When a body has these fields. */
const COMMON_FIELDS: Readonly<Record<string, string>> = {
  workflowId: 'Missing if the event is not about a workflow',
  jobId: 'Only in events of a job',
  finishedAt: 'Only in events of an ended job',
};

export const eventsReference: string = `${[
  HEAD,
  table(
    ['Field', 'Type', 'Description'],
    ['id', 'teamId', 'type', 'eventType', 'timestamp', 'sequence', 'workflowId', 'jobId', 'finishedAt'].map(
      (name) => {
        const field = fieldOfAny(name);
        return [
          `\`${name}\``,
          name.endsWith('ype') ? 'string' : typeOf(field),
          COMMON_FIELDS[name] ?? field.description ?? '',
        ];
      },
    ),
  ),
  '',
  ...EVENT_CATALOG.map(section),
]
  .join('\n')
  .trimEnd()}\n`;

function section({ type, description, schema, example }: EventKind): string {
  const data = (schema as Schema).properties?.data ?? {};
  const names = aliasesOf(type).map((name) => `\`${name}\``);
  return [
    `## ${type}\n`,
    `${description}\n`,
    ...(names.length === 0 ? [] : [`Aliases in subscriptions: ${names.join(', ')}.\n`]),
    `${table(['Field of `data`', 'Type', 'Description'], rowsOf(data))}\n`,
    `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\`\n`,
  ].join('\n');
}

/** The fields of an object. Nested fields have their path as name. */
function rowsOf(schema: Schema, above = ''): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${above}${name}`;
    const isOptional = !(schema.required ?? []).includes(name);
    const parts = [
      isOptional ? 'May be missing' : '',
      field.format === 'date-time' ? '' : (field.description ?? ''),
    ];
    const row = [`\`${path}\``, typeOf(field), parts.filter((part) => part !== '').join('. ')];
    return [row, ...rowsOf(field, `${path}.`), ...rowsOf(field.items ?? {}, `${path}[].`)];
  });
}

function typeOf({ type, const: value, enum: values, format }: Schema): string {
  if (value !== undefined) return `\`"${value}"\``;
  if (values !== undefined) return values.map((one) => `\`"${one}"\``).join(', ');
  if (format === 'date-time') return 'time';
  return [type ?? 'anything'].flat().join(' or ');
}

function fieldOfAny(name: string): Schema {
  const found = EVENT_CATALOG.map(({ schema }) => (schema as Schema).properties?.[name]).find(
    (one) => one !== undefined,
  );
  if (found === undefined) throw new Error(`No event has a field ${name}`);
  return found;
}
