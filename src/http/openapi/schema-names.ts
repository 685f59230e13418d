/**
 * Moves inline object schemas to `components.schemas` and names them. For an unnamed object, client generators invent a
 * name from its path (`ReadUsage200ResponseBucketsInnerDeliveriesLatencyMs`).
 *
 * Also adds a `type` to every `enum` and `const`, and a `format` to every integer. JSON Schema does not require them, but
 * without a type, client generators leave the field untyped (`interface{}` in Go), and without a format, they use 32-bit
 * integers: a Java client then reads a quota of 10 GB as 1,410,065,408 bytes.
 */
import type { JsonSchema } from '../../std/shape.ts';

export class SchemaNames {
  readonly #schemas = new Map<string, JsonSchema>();
  /** The name of each schema, by its JSON text: equal parts of two schemas share a name. */
  readonly #names = new Map<string, string>();

  /** @param schemas the schemas that already have names */
  constructor(schemas: Readonly<Record<string, JsonSchema>>) {
    for (const [name, schema] of Object.entries(schemas)) this.#add(name, this.below(schema, name));
  }

  /** All named schemas, including those that were named later. */
  schemas(): Record<string, JsonSchema> {
    return Object.fromEntries(this.#schemas);
  }

  /** Names the schema of a request or response exactly `name`. */
  whole(schema: JsonSchema, name: string): JsonSchema {
    const inner = this.below(schema, schema.type === 'array' ? singular(name) : name);
    if (!isNameable(inner) || inner.type !== 'object') return inner;
    this.#add(name, inner);
    return reference(name);
  }

  /** The schema with types, and with references in place of the objects inside. */
  below(schema: JsonSchema, name: string): JsonSchema {
    const { properties, items, oneOf, additionalProperties } = schema;
    const parts = Object.entries(properties ?? {}).map(([key, one]) => [
      key,
      this.#part(one, name + capital(key)),
    ]);
    return {
      ...typed(schema),
      ...(oneOf && { oneOf: oneOf.map((one, at) => this.#part(one, one.title ?? `${name}${at + 1}`)) }),
      ...(items && { items: this.#part(items, singular(name)) }),
      ...(properties && { properties: Object.fromEntries(parts) }),
      ...(typeof additionalProperties === 'object' && { additionalProperties: typed(additionalProperties) }),
    };
  }

  #part(schema: JsonSchema, name: string): JsonSchema {
    const inner = this.below(schema, name);
    if (!isNameable(inner)) return inner;
    const { description, ...bare } = inner;
    const stored = { ...bare, type: 'object' };
    const text = JSON.stringify(stored);
    const known = this.#names.get(text) ?? name;
    this.#names.set(text, known);
    this.#add(known, stored);
    return {
      ...(bare.type === 'object' ? reference(known) : { oneOf: [reference(known), { type: 'null' }] }),
      ...(description !== undefined && { description }),
    };
  }

  /** @throws Error if the name already belongs to a different schema */
  #add(name: string, schema: JsonSchema): void {
    const known = this.#schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two schemas would be named ${name}: give one of them a name in schemas.ts`);
    }
    this.#schemas.set(name, schema);
  }
}

/** Whether a schema is an object with named properties, possibly nullable. */
function isNameable({ type, properties }: JsonSchema): boolean {
  return properties !== undefined && [type ?? []].flat().every((one) => one === 'object' || one === 'null');
}

function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

function typed(schema: JsonSchema): JsonSchema {
  if (schema.type !== undefined) {
    const isInteger = [schema.type].flat().includes('integer');
    return isInteger ? { ...schema, format: schema.format ?? 'int64' } : schema;
  }
  const values = 'const' in schema ? [schema.const] : schema.enum;
  if (values === undefined) return schema;
  const types = [...new Set(values.map((value) => (value === null ? 'null' : typeof value)))];
  const [only] = types;
  return { type: types.length === 1 && only !== undefined ? only : types, ...schema };
}

/** `readUsage` → `Usage`, `listJobs` → `JobList`, `createKey` → `CreateKeyResult`. */
export function answerName(operationId: string): string {
  const [, verb, noun = ''] = /^(read|list)([A-Z]\w*)$/.exec(operationId) ?? [];
  if (verb === undefined) return `${capital(operationId)}Result`;
  return verb === 'read' ? noun : `${singular(noun)}List`;
}

export function requestName(operationId: string): string {
  return `${capital(operationId)}Request`;
}

function capital(name: string): string {
  return `${name[0]?.toUpperCase() ?? ''}${name.slice(1)}`;
}

function singular(name: string): string {
  return name.replace(/ies$/, 'y').replace(/(?<=[^s])s$/, '');
}
