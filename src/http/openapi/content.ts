/** How operations describe JSON bodies and JSON answers in OpenAPI. */
import { type JsonSchema, list, type NamedShape, object, type Shape, text } from '../../std/shape.ts';
import { closed } from '../input/strict.ts';
import type { Answer, Contents, Operation } from '../route.ts';

/** A time in a request: see `timeFrom`. */
export const requestTime = { type: 'string', format: 'date-time' };

/** The answer `{ message, [name] }`. */
export function messageWith(name: string, resource: NamedShape<unknown, never>) {
  return object({ message: text(), [name]: resource });
}

/**
 * A JSON request body, as an OpenAPI request body. An object takes only the properties that it names, at any depth, unless
 * its `additionalProperties` says otherwise.
 */
export function jsonBody(
  schema: JsonSchema,
  { required = true, example }: { required?: boolean; example?: unknown } = {},
): NonNullable<Operation<never>['requestBody']> {
  const content = { schema: closed(schema), ...(example === undefined ? {} : { example }) };
  return { required, content: { 'application/json': content } };
}

/**
 * A JSON answer, as an OpenAPI response object.
 *
 * @param headers their descriptions by name
 * @param others further content types by name
 */
export function jsonResponse(
  description: string,
  { schema }: Shape<unknown, never>,
  headers: Readonly<Record<string, string>> = {},
  others: Contents = {},
): Answer {
  const described = Object.entries(headers).map(([name, text]) => [name, header(text)]);
  return {
    description,
    ...(described.length === 0 ? {} : { headers: Object.fromEntries(described) }),
    content: { 'application/json': { schema }, ...others },
  };
}

/** The content of an answer that is no JSON. */
export function textContent(description?: string): Contents[string] {
  return { schema: text(description).schema };
}

/** The answer `{ [name]: [items] }` of a list in pages. */
export function pageResponse(name: string, resource: NamedShape<unknown, never>): Answer {
  return jsonResponse(`The ${name}`, object({ [name]: list(resource) }), {
    Link: 'With `rel="next"`, when `limit` left something out',
  });
}

function header(description: string): object {
  return { description, schema: { type: 'string' } };
}
