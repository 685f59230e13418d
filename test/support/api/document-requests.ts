/** Generates requests from an OpenAPI document: valid, damaged and hostile ones. */

/** The part of a document that is needed for requests. */
export interface ApiDocument {
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { schemas: Record<string, Schema> };
}

export interface DescribedOperation {
  operationId: string;
  security: object[];
  parameters?: { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  minLength?: number;
  format?: string;
  pattern?: string;
}

/** A request whose path still contains its parameters, so that it can be sent with several ids. */
export interface Request {
  operation: DescribedOperation;
  method: string;
  path: string;
  query: string;
  headers: Record<string, string>;
  body: string | undefined;
}

const HOSTILE_TEXTS = [
  '',
  ' ',
  '\u0000',
  '\ud800',
  '💥',
  '../../etc/passwd',
  "'; drop table job; --",
  '%ZZ',
  '%FF',
  '__proto__',
  'constructor',
  '-1',
  '1e309',
  '9'.repeat(40),
  'NaN',
  'x'.repeat(3_000),
  'null',
  'true',
  '0x10',
  '2026-13-45T99:99:99Z',
];
const HOSTILE_VALUES: readonly unknown[] = [
  ...HOSTILE_TEXTS,
  null,
  true,
  -1,
  0,
  0.5,
  1e300,
  2 ** 53,
  [],
  {},
  [null],
  [[]],
  { __proto__: 1 },
  { length: 1e9 },
];
const HOSTILE_BODIES = [
  '',
  '{',
  '[]',
  'null',
  '"x"',
  '\ufeff{}',
  '{"a":1}'.repeat(3),
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  '{"__proto__":{"x":1}}',
  'x'.repeat(70_000),
];

/**
 * Returns a function that generates random requests.
 *
 * @param known returns a valid value for a field or parameter whose schema alone would rarely produce one
 */
export function createRequests(
  document: ApiDocument,
  random: () => number,
  known: (name: string) => unknown,
): () => Request {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const chance = (one: number) => random() < one;

  function value(schema: Schema, depth = 0): unknown {
    if (chance(0.06)) return pick(HOSTILE_VALUES);
    if (schema.$ref !== undefined) {
      return value(document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, depth);
    }
    if ('const' in schema) return schema.const;
    if (schema.enum !== undefined) return pick(schema.enum);
    if (schema.oneOf !== undefined) return value(pick(schema.oneOf), depth);
    const type = Array.isArray(schema.type) ? pick(schema.type) : schema.type;
    if (type === 'null') return null;
    if (type === 'boolean') return chance(0.5);
    if (type === 'integer' || type === 'number') return number(schema, type === 'integer');
    if (type === 'array') {
      const length = (schema.minItems ?? 0) + Math.floor(random() * 3);
      return Array.from({ length }, () => value(schema.items ?? {}, depth + 1));
    }
    if (type === 'object') return object(schema, depth);
    if (type === 'string') return text(schema);
    return pick(HOSTILE_VALUES);
  }

  function named(name: string, schema: Schema, depth: number): unknown {
    const good = chance(0.8) ? known(name) : undefined;
    return good ?? value(schema, depth);
  }

  function number({ minimum = 0, maximum = 1_000 }: Schema, isWhole: boolean): number {
    if (chance(0.1)) return pick([minimum - 1, maximum + 1, minimum, maximum]);
    const found = minimum + random() * (Math.min(maximum, minimum + 1_000) - minimum);
    return isWhole ? Math.floor(found) : found;
  }

  function object(schema: Schema, depth: number): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const [name, of] of Object.entries(schema.properties ?? {})) {
      const isRequired = schema.required?.includes(name) === true;
      if (isRequired ? !chance(0.04) : chance(0.4) && depth < 3) {
        found[name] = named(name, of, depth + 1);
      }
    }
    if (chance(0.04)) found[pick(HOSTILE_TEXTS)] = pick(HOSTILE_VALUES);
    return found;
  }

  function text({ format, pattern, minLength = 0, maxLength = 20 }: Schema): string {
    if (format === 'date-time') return new Date(Date.now() + (random() - 0.5) * 1e10).toISOString();
    if (pattern?.includes('://') === true) return `http://127.0.0.1:9/${Math.floor(random() * 20)}`;
    if (pattern?.includes('d{') === true) return String(Math.floor(random() * 100));
    const length = minLength + Math.floor(random() * (Math.min(maxLength, 20) - minLength));
    return Array.from({ length }, () => pick([...'abcXYZ019_-.* é'])).join('');
  }

  return () => {
    const { path, method, operation } = pick(operations);
    const pairs: string[] = [];
    const headers: Record<string, string> = {};
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in === 'path') continue;
      if (parameter.required === true ? chance(0.05) : chance(0.6)) continue;
      const given = chance(0.15) ? pick(HOSTILE_TEXTS) : asText(named(parameter.name, parameter.schema, 0));
      if (parameter.in === 'header') headers[parameter.name] = given.replace(/[^\x20-\x7e]/g, '?').trim();
      // Other tests cover `wait`. Here it would take too long.
      else pairs.push(`${parameter.name}=${parameter.name === 'wait' ? '0' : encode(given, chance(0.9))}`);
    }
    if (chance(0.05)) pairs.push(pick(['&&', '=', '%ZZ=1', '__proto__=1', 'cursor=x', 'limit=0']));
    const body = bodyOf(operation, headers);
    return { operation, method, path, query: pairs.length === 0 ? '' : `?${pairs.join('&')}`, headers, body };
  };

  function bodyOf(operation: DescribedOperation, headers: Record<string, string>): string | undefined {
    const contents = Object.entries(operation.requestBody?.content ?? {});
    if (contents.length === 0) return chance(0.1) ? pick(HOSTILE_BODIES) : undefined;
    const [type, { schema }] = pick(contents);
    if (!chance(0.05)) headers['content-type'] = chance(0.05) ? pick(['text/plain', 'x', '']) : type;
    if (chance(0.08)) return pick(HOSTILE_BODIES);
    const made = value(schema);
    return type === 'application/json' ? JSON.stringify(made) : asText(made);
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function encode(text: string, isWhole: boolean): string {
  return isWhole ? encodeURIComponent(text.toWellFormed()) : text.replace(/[^\x21-\x7e]|[&#]/g, '');
}
