/**
 * Moves objects that are described in place to `components.schemas`, under names of their own: without a name, client
 * generators make one of the path to the object (`ReadUsage200ResponseBucketsInnerDeliveriesLatencyMs`).
 */

/** The part of a schema that can hold further ones. */
interface Schema {
  /** The name of one of several shapes. */
  title?: string;
  type?: string | readonly string[];
  description?: string;
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  oneOf?: readonly Schema[];
  $ref?: string;
}

interface Content {
  schema: Schema;
}

interface Described {
  operationId: string;
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { content?: Record<string, Content> }>;
}

interface Document {
  paths: Record<string, Record<string, object>>;
  components: { schemas: object };
}

export function withNames<D extends Document>(document: D): D {
  const names = new Names();
  for (const [name, schema] of Object.entries(document.components.schemas as Record<string, Schema>)) {
    names.add(name, names.below(schema, name));
  }
  const content = (of: Record<string, Content>, name: string) =>
    Object.fromEntries(
      Object.entries(of).map(([type, one]) => [type, { ...one, schema: names.whole(one.schema, name) }]),
    );
  const named = ({ requestBody, responses, ...operation }: Described): Described => ({
    ...operation,
    ...(requestBody === undefined
      ? {}
      : {
          requestBody: {
            ...requestBody,
            content: content(requestBody.content, requestName(operation.operationId)),
          },
        }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, one]) => [
        status,
        one.content === undefined
          ? one
          : { ...one, content: content(one.content, answerName(operation.operationId)) },
      ]),
    ),
  });
  const paths = Object.fromEntries(
    Object.entries(document.paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [method, named(operation as Described)]),
      ),
    ]),
  );
  return { ...document, paths, components: { ...document.components, schemas: names.schemas() } };
}

class Names {
  readonly #schemas = new Map<string, Schema>();
  /** Names by what they stand for: equal parts of two schemas get one name. */
  readonly #names = new Map<string, string>();

  schemas(): Record<string, Schema> {
    return Object.fromEntries(this.#schemas);
  }

  /** @throws Error when the name already stands for something else */
  add(name: string, schema: Schema): void {
    const known = this.#schemas.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two schemas would be named ${name}: give one of them a name in schemas.ts`);
    }
    this.#schemas.set(name, schema);
  }

  /** A request or an answer: it gets this very name. */
  whole(schema: Schema, name: string): Schema {
    const inner = this.below(schema, schema.type === 'array' ? singular(name) : name);
    if (!isNameable(inner) || inner.type !== 'object') return inner;
    this.add(name, inner);
    return reference(name);
  }

  /** The same schema, with the objects that it holds moved away. */
  below(schema: Schema, name: string): Schema {
    const { properties, items, oneOf } = schema;
    return {
      ...schema,
      ...(oneOf === undefined
        ? {}
        : { oneOf: oneOf.map((one, at) => this.#part(one, one.title ?? `${name}${at + 1}`)) }),
      ...(items === undefined ? {} : { items: this.#part(items, singular(name)) }),
      ...(properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              Object.entries(properties).map(([key, one]) => [key, this.#part(one, name + capital(key))]),
            ),
          }),
    };
  }

  #part(schema: Schema, name: string): Schema {
    const inner = this.below(schema, name);
    if (!isNameable(inner)) return inner;
    const { description, ...bare } = inner;
    const isNullable = bare.type !== 'object';
    const stored = { ...bare, type: 'object' };
    const text = JSON.stringify(stored);
    const known = this.#names.get(text) ?? name;
    this.#names.set(text, known);
    this.add(known, stored);
    const described = description === undefined ? {} : { description };
    return isNullable
      ? { oneOf: [reference(known), { type: 'null' }], ...described }
      : { ...reference(known), ...described };
  }
}

/** An object with fields of its own, and possibly null instead. */
function isNameable({ type, properties }: Schema): boolean {
  const types = typeof type === 'string' ? [type] : (type ?? []);
  return properties !== undefined && types.every((one) => one === 'object' || one === 'null');
}

function reference(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** `readUsage` → `Usage`, `listJobs` → `JobList`, `createKey` → `CreateKeyResult`. */
function answerName(operationId: string): string {
  const [, verb, noun = ''] = /^(read|list)([A-Z]\w*)$/.exec(operationId) ?? [];
  if (verb === undefined) return `${capital(operationId)}Result`;
  return verb === 'read' ? noun : `${singular(noun)}List`;
}

function requestName(operationId: string): string {
  return `${capital(operationId)}Request`;
}

function capital(name: string): string {
  return `${name[0]?.toUpperCase() ?? ''}${name.slice(1)}`;
}

function singular(name: string): string {
  return name.replace(/ies$/, 'y').replace(/(?<=[^s])s$/, '');
}
