/** Adds an example to every parameter, body and answer that has none: see `example-values.ts`. */
import { NAMED_EXAMPLES, OWN_EXAMPLES } from './example-values.ts';

/** The part of JSON Schema that examples are made from. */
interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  format?: string;
  enum?: readonly unknown[];
  const?: unknown;
  examples?: readonly unknown[];
  default?: unknown;
  minimum?: number;
  oneOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
}

interface Content {
  schema: Schema;
  example?: unknown;
}

interface Described {
  operationId: string;
  parameters?: readonly { name: string; schema: Schema; example?: unknown }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { content?: Record<string, Content> }>;
}

interface Document {
  paths: Record<string, Record<string, object>>;
  components: { schemas: object };
}

export function withExamples<D extends Document>(document: D): D {
  const example = exampleMaker(document.components.schemas as Record<string, Schema>);
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [
          method,
          exemplified(operation as Described, example),
        ]),
      ),
    ]),
  );
  return { ...document, paths };
}

/** @param operationId its own examples come first */
type Make = (schema: Schema, name: string, operationId: string) => unknown;

function exemplified(operation: Described, make: Make): Described {
  const { operationId, parameters, requestBody, responses } = operation;
  const withOne = (content: Record<string, Content>, body: 'request' | 'answer') =>
    Object.fromEntries(
      Object.entries(content).map(([type, one]) => {
        const own = OWN_EXAMPLES[`${operationId}.${body}.${type}`];
        return [type, { ...one, example: one.example ?? own ?? make(one.schema, '', operationId) }];
      }),
    );
  const ok = responses[200];
  return {
    ...operation,
    ...(parameters === undefined
      ? {}
      : {
          parameters: parameters.map((one) => ({
            ...one,
            example: one.example ?? make(one.schema, one.name, operationId),
          })),
        }),
    ...(requestBody === undefined
      ? {}
      : { requestBody: { ...requestBody, content: withOne(requestBody.content, 'request') } }),
    responses: {
      ...responses,
      ...(ok?.content === undefined ? {} : { 200: { ...ok, content: withOne(ok.content, 'answer') } }),
    },
  };
}

/** Takes an example from the schema itself, else by its name, else by its type. */
function exampleMaker(schemas: Readonly<Record<string, Schema>>): Make {
  const make: Make = (schema, name, operationId) => {
    const own = OWN_EXAMPLES[`${operationId}.${name}`];
    if (own !== undefined) return own;
    if (schema.$ref !== undefined)
      return make(schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, name, operationId);
    if (schema.examples !== undefined) return schema.examples[0];
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return schema.enum[0];
    if (schema.oneOf?.[0] !== undefined) return make(schema.oneOf[0], name, operationId);
    const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
    const named = NAMED_EXAMPLES[name];
    if (named !== undefined && types.includes(typeOf(named))) return named;
    switch (types[0]) {
      case 'object':
        return Object.fromEntries(
          Object.entries(schema.properties ?? {}).map(([key, one]) => [key, make(one, key, operationId)]),
        );
      case 'array':
        return schema.items === undefined ? [] : [make(schema.items, name, operationId)];
      case 'string':
        return schema.format === 'date-time' ? '2026-11-21T02:00:00.000Z' : '…';
      case 'integer':
      case 'number':
        return schema.default ?? Math.max(schema.minimum ?? 1, 1);
      case 'boolean':
        return schema.default ?? false;
      default:
        return null;
    }
  };
  return make;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}
