/**
 * Describes JSON values once. A shape provides the TypeScript type (`Json`), the JSON Schema, and a function that
 * converts an internal value to JSON. This function includes only the fields of the shape, and formats times as ISO
 * 8601.
 *
 * No library is used. TypeBox, the smallest library with types and schemas, takes longer to load than a command takes
 * to run. It has no nullable types that OpenAPI generators understand, and does not convert internal values to JSON.
 */
import { toIso } from './clock.ts';

/** The part of JSON Schema that shapes use. */
export interface JsonSchema {
  $ref?: string;
  title?: string;
  type?: string | readonly string[];
  description?: string;
  enum?: readonly unknown[];
  const?: unknown;
  format?: string;
  required?: readonly string[];
  properties?: Readonly<Record<string, JsonSchema>>;
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  oneOf?: readonly JsonSchema[];
  discriminator?: { propertyName: string; mapping: Readonly<Record<string, string>> };
  examples?: readonly unknown[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  default?: unknown;
}

/** @typeParam In type of the internal value: like the JSON value, but with times in epoch milliseconds */
export interface Shape<Out, In = Out> {
  readonly schema: JsonSchema;
  of(value: In): Out;
}

/** A shape that has a name in `components.schemas`, by which other shapes refer to it. */
export interface NamedShape<Out, In = Out> extends Shape<Out, In> {
  readonly name: string;
  /** The schema in `components.schemas`. */
  readonly definition: JsonSchema;
  readonly example: Out;
}

/** The type of a shape's JSON. */
export type Json<S> = S extends Shape<infer Out, infer _> ? Out : never;
/** The type of a shape's internal value. */
type Made<S> = S extends Shape<infer _, infer In> ? In : never;

interface Optional<Out, In> extends Shape<Out, In> {
  readonly isOptional: true;
}

// biome-ignore lint/suspicious/noExplicitAny: fields may have any type.
type Fields = Readonly<Record<string, Shape<any, any>>>;
type OptionalNames<F> = { [K in keyof F]: F[K] extends { isOptional: true } ? K : never }[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectJson<F> = Flat<
  { -readonly [K in Exclude<keyof F, OptionalNames<F>>]: Json<F[K]> } & {
    -readonly [K in OptionalNames<F>]?: Json<F[K]>;
  }
>;
type ObjectMade<F> = Flat<
  { readonly [K in Exclude<keyof F, OptionalNames<F>>]: Made<F[K]> } & {
    readonly [K in OptionalNames<F>]?: Made<F[K]> | undefined;
  }
>;

export const text = (description?: string) => same<string>('string', description);
export const integer = (description?: string, bounds: { minimum?: number; maximum?: number } = {}) =>
  same<number>('integer', description, bounds);
export const number = (description?: string) => same<number>('number', description);
export const boolean = (description?: string) => same<boolean>('boolean', description);
/** An object with any fields. */
export const anyObject = (description?: string) => same<Record<string, unknown>>('object', description);

/** A time, which is in epoch milliseconds internally and in ISO 8601 in JSON. */
export function time(description = 'ISO 8601 in UTC with milliseconds'): Shape<string, number> {
  return { schema: { type: 'string', format: 'date-time', description }, of: toIso };
}

/** One of several names. */
export function choice<const Name extends string>(names: readonly Name[], description?: string): Shape<Name> {
  return { schema: described({ enum: names }, description), of: (value) => value };
}

/** A value that a given schema describes. The value is converted to JSON unchanged. */
export function raw<Out>(schema: JsonSchema): Shape<Out> {
  return { schema, of: (value) => value };
}

export function nullable<Out, In>({ schema, of }: Shape<Out, In>): Shape<Out | null, In | null> {
  return { schema: orNull(schema), of: (value) => (value === null ? null : of(value)) };
}

/** A field that may be missing. */
export function optional<Out, In>(shape: Shape<Out, In>): Optional<Out, In> {
  return { ...shape, isOptional: true };
}

export function list<Out, In>({ schema, of }: Shape<Out, In>, description?: string) {
  return {
    schema: { ...described({ type: 'array' }, description), items: schema },
    of: (values: readonly In[]): Out[] => values.map((one) => of(one)),
  };
}

/** An object whose properties may have any names. All of its values have the same shape. */
export function map<Out>({ schema }: Shape<Out>, description?: string): Shape<Record<string, Out>> {
  return raw(described({ type: 'object', additionalProperties: schema }, description));
}

export function object<const F extends Fields>(
  fields: F,
  description?: string,
): Shape<ObjectJson<F>, ObjectMade<F>> & { fields: F } {
  const entries = Object.entries(fields);
  const required = entries.filter(([, field]) => !('isOptional' in field)).map(([name]) => name);
  return {
    fields,
    schema: {
      ...described({ type: 'object' }, description),
      required,
      properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])),
    },
    of(value) {
      const json: Record<string, unknown> = {};
      for (const [name, field] of entries) {
        const made = (value as Record<string, unknown>)[name];
        if (made !== undefined) json[name] = field.of(made);
      }
      return json as ObjectJson<F>;
    },
  };
}

/** The same shape, without additional properties. */
export function exactly<Out, In>(shape: Shape<Out, In>): Shape<Out, In> {
  return { ...shape, schema: { ...shape.schema, additionalProperties: false } };
}

/** Returns the same shape with a different description. */
export function as<Out, In>(description: string, shape: Shape<Out, In>): Shape<Out, In> {
  return { ...shape, schema: { ...shape.schema, description } };
}

/** Gives a shape a name and an example, so that other shapes can refer to it. */
export function named<Out, In>(
  name: string,
  { schema, of }: Shape<Out, In>,
  example: NoInfer<Out>,
): NamedShape<Out, In> {
  const definition = { ...schema, examples: [example] };
  return { name, definition, example, schema: { $ref: `#/components/schemas/${name}` }, of };
}

/** Adds an example to a shape that only one operation returns and that needs no name. */
export function withExample<Out, In>({ schema, of }: Shape<Out, In>, example: NoInfer<Out>): Shape<Out, In> {
  return { schema: { ...schema, examples: [example] }, of };
}

function same<Out>(type: string, description?: string, more: JsonSchema = {}): Shape<Out> {
  return raw(described({ type, ...more }, description));
}

function described(schema: JsonSchema, description?: string): JsonSchema {
  return description === undefined ? schema : { ...schema, description };
}

function orNull({ description, ...schema }: JsonSchema): JsonSchema {
  if (schema.enum !== undefined) return described({ enum: [...schema.enum, null] }, description);
  if (schema.$ref !== undefined) return described({ oneOf: [schema, { type: 'null' }] }, description);
  return described({ ...schema, type: [schema.type as string, 'null'] }, description);
}
