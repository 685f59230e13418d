/** Flattens a JSON Schema into rows, one for each field. */
import type { Schema } from './openapi.ts';

export interface SchemaField {
  /** `source.url`, `records[].id`. */
  path: string;
  /** `string`, `integer | null`, `"active" | "paused"`. */
  type: string;
  isRequired: boolean;
  description: string;
}

/** Deeper ones are left to the example. */
const MAX_DEPTH = 4;

/** @param schemas what `$ref` names */
export function fieldsOf(schema: Schema, schemas: Record<string, Schema>): SchemaField[] {
  return below(schema, schemas, '', 0);
}

function below(
  schema: Schema,
  schemas: Record<string, Schema>,
  before: string,
  depth: number,
): SchemaField[] {
  const { properties, required = [], items, oneOf } = resolved(schema, schemas);
  if (depth > MAX_DEPTH) return [];
  if (items !== undefined) return below(items, schemas, `${before}[]`, depth);
  if (oneOf !== undefined && properties === undefined) {
    const paths = new Map<string, SchemaField>();
    for (const one of oneOf) {
      for (const field of below(one, schemas, before, depth))
        if (!paths.has(field.path)) paths.set(field.path, field);
    }
    return [...paths.values()];
  }
  return Object.entries(properties ?? {}).flatMap(([name, property]) => {
    const path = before === '' ? name : `${before}.${name}`;
    const field = resolved(property, schemas);
    return [
      {
        path,
        type: typeOf(field, schemas),
        isRequired: required.includes(name),
        description: property.description ?? field.description ?? '',
      },
      ...below(field, schemas, path, depth + 1),
    ];
  });
}

/** The kind of a value, in words. */
export function typeOf(schema: Schema, schemas: Record<string, Schema> = {}): string {
  const { type, enum: values, const: only, items, oneOf } = resolved(schema, schemas);
  if (only !== undefined) return JSON.stringify(only);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (type === undefined && oneOf !== undefined) {
    return [...new Set(oneOf.map((one) => typeOf(one, schemas)))].join(' | ');
  }
  if (type === 'array' && items !== undefined) return `${typeOf(items, schemas)}[]`;
  return type === undefined ? 'any' : [type].flat().join(' | ');
}

function resolved(schema: Schema, schemas: Record<string, Schema>): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  return schemas[name] ?? {};
}
