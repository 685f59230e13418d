/** Describes request and response bodies for OpenAPI. */
import { type JsonSchema, list, type NamedShape, object, type Shape, text } from '../../std/shape.ts';
import { closed } from '../input/strict.ts';
import type { Answer, Contents, Operation } from '../route.ts';

/** The schema of a time in a request. `timeFrom` reads the value. */
export const requestTime = { type: 'string', format: 'date-time' };

/** Descriptions of headers that several operations share. */
export const NEXT_PAGE = 'URL of the next page, with `rel="next"`. Missing on the last page';
export const RETRY_AFTER = 'Seconds to wait before the next call';

/** The response `{ message, [name] }`. */
export function messageWith(name: string, resource: NamedShape<unknown, never>) {
  return object({ message: text(), [name]: resource });
}

/**
 * An OpenAPI request body. Objects at any depth accept only the properties that they list, unless
 * `additionalProperties` is set.
 */
export function jsonBody(
  schema: JsonSchema,
  { required = true, example }: { required?: boolean; example?: unknown } = {},
): NonNullable<Operation<never>['requestBody']> {
  const content = { schema: closed(schema), ...(example === undefined ? {} : { example }) };
  return { required, content: { 'application/json': content } };
}

/**
 * An OpenAPI response.
 *
 * @param headers descriptions by name
 * @param others further content types
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

/** The content of a response that is not JSON. */
export function textContent(description?: string): Contents[string] {
  return { schema: text(description).schema };
}

/** The response `{ [name]: [items] }` of a paginated list. */
export function pageResponse(name: string, resource: NamedShape<unknown, never>): Answer {
  return jsonResponse(`One page of ${name}`, object({ [name]: list(resource) }), { Link: NEXT_PAGE });
}

function header(description: string): object {
  return { description, schema: { type: 'string' } };
}
