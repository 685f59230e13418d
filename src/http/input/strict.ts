/**
 * Refuses input that an operation does not declare: query parameters, fields of the body at any depth, and bodies of
 * operations without one. Ignoring it would be dangerous: a misspelled `dryRun` would erase data permanently.
 */
import { nearest } from '../../std/nearest.ts';
import type { JsonSchema } from '../../std/shape.ts';
import type { Declared } from '../route.ts';
import { invalid } from './values.ts';

/** Maximum number of characters of an unknown name that an error repeats. */
const MAX_SHOWN = 100;

/** Whether the operation refuses unknown input. */
export function isStrict({ frozen, open }: Declared): boolean {
  return frozen !== true && open !== true;
}

/**
 * @param query the part after the question mark, still encoded
 * @throws Problem `field_invalid` for the first parameter that the operation does not declare
 */
export function refuseUnknownQuery(operation: Declared, query: string): void {
  if (query === '' || !isStrict(operation)) return;
  const known = queryNames(operation);
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const name = decoded(pair.split('=', 1)[0] ?? '');
    if (known.includes(name)) continue;
    const isField = Object.hasOwn(bodySchema(operation)?.properties ?? {}, name);
    const advice = isField
      ? 'It is a field of the JSON body'
      : adviceOn(name, known, { none: 'This operation takes no query parameters' });
    invalid(`There is no query parameter ${shown(name)}. ${advice}`);
  }
}

/**
 * @throws Problem `field_invalid` for the first field that the operation does not declare. An operation that ignores
 *   unknown fields refuses only those that it declares as `misplaced`
 */
export function refuseUnknownFields(operation: Declared, fields: Readonly<Record<string, unknown>>): void {
  for (const [name, sentence] of Object.entries(operation.misplaced ?? {})) {
    if (Object.hasOwn(fields, name)) invalid(sentence);
  }
  if (!isStrict(operation)) return;
  const schema = bodySchema(operation) ?? { properties: {}, additionalProperties: false };
  const inQuery = queryNames(operation);
  for (const name of Object.keys(fields)) {
    if (!inQuery.includes(name) || isKnown(schema, name)) continue;
    invalid(`There is no field ${shown(name)}. It is a query parameter: ?${name}=…`);
  }
  refuseUnknownIn(schema, fields, '');
}

/** Adds `additionalProperties: false` to all objects that list their properties, unless they already set it. */
export function closed({ properties, items, oneOf, ...others }: JsonSchema): JsonSchema {
  return {
    ...(properties === undefined ? {} : { additionalProperties: false }),
    ...others,
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, one]) => [name, closed(one)]),
          ),
        }),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map(closed) }),
  };
}

function refuseUnknownIn(schema: JsonSchema, value: unknown, place: string): void {
  if (Array.isArray(value)) {
    // Items that are not described may be nested so deeply that a recursion would overflow the stack.
    if (schema.items === undefined) return;
    for (const [at, one] of value.entries()) refuseUnknownIn(schema.items, one, `${place}[${at}]`);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, one] of Object.entries(value)) {
    const path = place === '' ? name : `${place}.${name}`;
    if (!isKnown(schema, name)) {
      const advice = adviceOn(name, fieldNames(schema), {
        none: 'This operation takes no body',
        place,
      });
      invalid(`There is no field ${shown(path)}. ${advice}`);
    }
    const below = forms(schema).flatMap((form) =>
      Object.hasOwn(form.properties ?? {}, name) ? [form.properties?.[name] ?? {}] : [],
    );
    if (below[0] !== undefined) refuseUnknownIn(below[0], one, path);
  }
}

/** The alternatives of a schema, or the schema itself. */
function forms(schema: JsonSchema): readonly JsonSchema[] {
  return schema.oneOf ?? [schema];
}

function fieldNames(schema: JsonSchema): string[] {
  return [...new Set(forms(schema).flatMap(({ properties = {} }) => Object.keys(properties)))];
}

function isKnown(schema: JsonSchema, name: string): boolean {
  return forms(schema).some(
    ({ properties = {}, additionalProperties }) =>
      additionalProperties !== false || Object.hasOwn(properties, name),
  );
}

function queryNames({ parameters = [] }: Declared): string[] {
  return parameters.filter((one) => one.in === 'query').map(({ name }) => name);
}

function bodySchema({ requestBody }: Declared): JsonSchema | undefined {
  return requestBody?.content['application/json']?.schema;
}

/** @param context.place the path of the object that contains the field */
function adviceOn(
  name: string,
  known: readonly string[],
  { none, place = '' }: { none: string; place?: string },
): string {
  if (known.length === 0) return none;
  const path = (one: string) => (place === '' ? one : `${place}.${one}`);
  const meant = nearest(name, known);
  if (meant !== undefined) return `Did you mean \`${path(meant)}\`?`;
  return `This operation takes ${known.map(path).join(', ')}`;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, MAX_SHOWN));
}

/** The decoded name, or the name as sent if it is not valid percent-encoded UTF-8. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}
