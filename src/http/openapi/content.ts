/** How operations describe JSON bodies, JSON answers and times in OpenAPI. */
import { closed } from '../strict.ts';
import type { schemas } from './schemas.ts';

/** A time in a request: see `timeFrom`. */
export const requestTime = { type: 'string', format: 'date-time' };

/** As much of `urlMistake` as a pattern can say. */
export const URL_PATTERN = String.raw`^[hH][tT][tT][pP][sS]?://[^/?#\\\s][^\\\s]*$`;

/** An object that always has all of these properties. */
export function objectSchema(properties: Record<string, object>, description?: string) {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    required: Object.keys(properties),
    properties,
  };
}

/** The schema of an answer `{ message, [name] }`. */
export function messageWith(name: string, schema: keyof typeof schemas): object {
  return {
    type: 'object',
    required: ['message', name],
    properties: { message: { type: 'string' }, [name]: { $ref: `#/components/schemas/${schema}` } },
  };
}

/**
 * A JSON request body, as an OpenAPI request body. An object takes only the properties that it names, at any depth, unless
 * its `additionalProperties` says otherwise.
 */
export function jsonBody(
  schema: object,
  { required = true, example }: { required?: boolean; example?: unknown } = {},
): object {
  const content = { schema: closed(schema), ...(example === undefined ? {} : { example }) };
  return { required, content: { 'application/json': content } };
}

/**
 * A JSON answer, as an OpenAPI response object.
 *
 * @param schema the name of one of the `schemas`, or a schema of its own
 * @param headers their descriptions by name
 */
export function jsonResponse(
  description: string,
  schema: keyof typeof schemas | object,
  headers: Readonly<Record<string, string>> = {},
): object {
  return {
    description,
    ...(Object.keys(headers).length === 0
      ? {}
      : { headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, header(text)])) }),
    content: {
      'application/json': {
        schema: typeof schema === 'string' ? { $ref: `#/components/schemas/${schema}` } : schema,
      },
    },
  };
}

function header(description: string): object {
  return { description, schema: { type: 'string' } };
}
