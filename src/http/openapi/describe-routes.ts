/** Makes an OpenAPI 3.1 document of the routes, and of the events that webhooks receive. */

import { type ErrorCode, statusOf } from '../../model/error.ts';
import { EVENT_CATALOG } from '../../model/event-catalog.ts';
import { errorResource } from '../../resources/error.ts';
import { eventSchemaName } from '../../resources/event.ts';
import { isStrict } from '../input/strict.ts';
import type { Answer, Contents, Parameter, Refusal, Route } from '../route.ts';
import { plainPath } from '../server/match.ts';
import { jsonBody, jsonResponse } from './content.ts';
import { exampleOf } from './examples.ts';
import { answerName, requestName, SchemaNames } from './schema-names.ts';
import { schemas } from './schemas.ts';

/** The whole document. Its version is that of the contract, not of the software. */
export function describeRoutes(routes: readonly Route[]) {
  const names = new SchemaNames(schemas);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = plainPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route, names) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Flowhook',
      version: '1.0.0',
      description:
        'Workflows run as jobs, jobs publish records, records are read here, and webhooks report what changed. ' +
        'Every error answer is `{ "error": string }`; its code is in the header `x-error-code`, the id to find it ' +
        'by in the log in `x-request-id`. Where `Accept` prefers `application/problem+json` to other JSON, it is ' +
        '`Problem` (RFC 9457), except on the five operations of the contract. ' +
        'Beside what an operation lists, each path answers 405 ' +
        'with `allow` to a method that it does not take (`MethodNotAllowed`). 503 comes while the service starts, ' +
        'stops, is overloaded or cannot reach its database: try again shortly, with the same `idempotency-key` ' +
        'where there is one. 429 comes only where the operator has set rate limits.',
    },
    servers: [
      {
        url: '{baseUrl}',
        description: 'Your installation',
        variables: {
          baseUrl: {
            default: 'http://127.0.0.1:8080',
            description: 'Where clients reach it; without a setting, `flowhook serve` listens here',
          },
        },
      },
    ],
    tags: [...new Set([...routes.map((route) => route.operation.group), 'Events'])].map((name) => ({ name })),
    paths,
    webhooks: describeWebhooks(),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
      headers: HEADERS,
      responses: Object.fromEntries(
        [METHOD_NOT_ALLOWED, ...SHARED].map(({ name, refusal }) => [name, refused([refusal])]),
      ),
      schemas: names.schemas(),
    },
  };
}

function describe(route: Route, names: SchemaNames): object {
  const { operation, scope } = route;
  const { id, requestBody } = operation;
  // Only what OpenAPI knows: those of the query can also be read.
  const parameters = [...(operation.parameters ?? []), ...(operation.etag ? [IF_NONE_MATCH] : [])].map(
    ({ name, in: place, required, description, schema, example }) => ({
      name,
      in: place,
      ...(required && { required }),
      description,
      schema: names.below(schema, name),
      example: example ?? exampleOf(id, schema, name),
    }),
  );
  const contents = (of: Contents, name: string, exampleName?: 'request' | 'answer') =>
    Object.fromEntries(
      Object.entries(of).map(([type, { schema, example }]) => [
        type,
        {
          schema: names.whole(schema, name),
          ...(exampleName && { example: example ?? exampleOf(id, schema, `${exampleName}.${type}`) }),
        },
      ]),
    );
  const described = (answer: Answer, headers: object = {}, exampleName?: 'answer') => ({
    ...withHeaders(answer, headers),
    ...(answer.content && { content: contents(answer.content, answerName(id), exampleName) }),
  });
  return {
    operationId: id,
    tags: [operation.group],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    security: scope === null ? [] : [{ apiKey: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody && {
      requestBody: { ...requestBody, content: contents(requestBody.content, requestName(id), 'request') },
    }),
    responses: {
      200: described(operation.answer, operation.etag ? TAG : {}, 'answer'),
      ...Object.fromEntries(
        Object.entries(operation.otherAnswers ?? {}).map(([status, answer]) => [status, described(answer)]),
      ),
      ...(operation.etag
        ? { 304: withHeaders({ description: 'It still is what `If-None-Match` names' }, TAG) }
        : {}),
      ...(operation.otherAnswers?.default === undefined
        ? { ...refusedBy(route), ...SHARED_BY_STATUS }
        : anyOf(operation.otherAnswers.default, { ...refusedBy(route), ...SHARED_IN_PLACE })),
    },
  };
}

/** The errors of a route that may answer with any status on purpose as well, whose answer then is no error. */
function anyOf(answer: Answer, errors: Record<number, Answer>): Record<string, Answer> {
  return Object.fromEntries(
    Object.entries(errors).map(([status, error]) => [
      status,
      { ...error, content: { ...error.content, ...answer.content } },
    ]),
  );
}

/** The errors of a route by status: its own, and those that every route of its kind may answer with. */
function refusedBy({ operation, scope, method }: Route): Record<number, Answer> {
  const isFrozen = operation.frozen === true;
  const codes = Object.entries({
    ...(scope === null ? {} : { unauthorized: 'Unauthorized' }),
    ...(scope === null || scope === 'any' || isFrozen
      ? {}
      : { scope_missing: 'The key does not have the scope that this needs' }),
    ...operation.errors,
  }) as [ErrorCode, Refusal][];
  const own = Map.groupBy(codes, ([code]) => statusOf(code, { isFrozen }));
  const strict: Partial<Record<ErrorCode, string>> = isStrict(operation)
    ? {
        field_invalid: 'A parameter or a field is unknown',
        ...(method === 'GET' ? {} : { body_too_large: 'The body is too large' }),
        ...(operation.requestBody === undefined ? {} : { content_unsupported: 'The body is not JSON' }),
      }
    : {};
  for (const [code, refusal] of Object.entries(strict) as [ErrorCode, Refusal][]) {
    const status = statusOf(code);
    if (!own.has(status)) own.set(status, [[code, refusal]]);
  }
  return Object.fromEntries(
    [...own].map(([status, several]) => [status, refused(several.map(([, refusal]) => refusal))]),
  );
}

const IF_NONE_MATCH: Parameter = {
  name: 'if-none-match',
  in: 'header',
  description: 'The `ETag` of what the client has',
  schema: { type: 'string' },
};
const TAG = { etag: { description: 'Names this answer', schema: { type: 'string' } } };

/** Those of every answer, and those of every error. */
const HEADERS = {
  'x-request-id': {
    description: 'The id of the request, to find it by in the log of the service',
    schema: { type: 'string' },
  },
  'x-error-code': {
    description: 'What is wrong, for programs: docs/reference/errors.md lists the codes',
    schema: { type: 'string' },
  },
};
const REQUEST_ID = { 'x-request-id': { $ref: '#/components/headers/x-request-id' } };
const ERROR_CODE = { 'x-error-code': { $ref: '#/components/headers/x-error-code' } };

interface SharedRefusal {
  code: ErrorCode;
  name: string;
  refusal: Refusal;
}

/** What any operation may answer, whatever else it answers. */
const SHARED: readonly SharedRefusal[] = [
  {
    code: 'rate_limited',
    name: 'TooManyRequests',
    refusal: { description: 'More requests than the operator allows', headers: { 'retry-after': 'Seconds' } },
  },
  { code: 'internal', name: 'InternalError', refusal: 'Something went wrong in the service' },
  {
    code: 'overloaded',
    name: 'Unavailable',
    refusal: {
      description: 'The service is starting, stopping or overloaded, or cannot reach its database',
      headers: { 'retry-after': 'Seconds' },
    },
  },
];
/** A path answers this, and none of its operations. */
const METHOD_NOT_ALLOWED: SharedRefusal = {
  code: 'method_not_allowed',
  name: 'MethodNotAllowed',
  refusal: {
    description: 'The path does not take this method',
    headers: { allow: 'The methods that it takes' },
  },
};

const SHARED_BY_STATUS = Object.fromEntries(
  SHARED.map(({ code, name }) => [statusOf(code), { $ref: `#/components/responses/${name}` }]),
);
const SHARED_IN_PLACE = Object.fromEntries(
  SHARED.map(({ code, refusal }) => [statusOf(code), refused([refusal])]),
);

function withHeaders(answer: Answer, headers: object = {}): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers, ...REQUEST_ID } };
}

/** @param errors with the same status */
function refused(errors: readonly Refusal[]): Answer {
  const all = errors.map((one) => (typeof one === 'string' ? { description: one, headers: {} } : one));
  const answer = jsonResponse(
    all.map(({ description }) => description).join('; or: '),
    errorResource,
    Object.assign({}, ...all.map(({ headers }) => headers)),
  );
  return withHeaders(answer, ERROR_CODE);
}

const EVENT_HEADERS = {
  'webhook-id': 'The id of the event: the same in every attempt, to tell repetitions by',
  'webhook-timestamp': 'When this attempt was signed, in seconds since 1970',
  'webhook-signature':
    'Standard Webhooks 1.0: signatures with spaces between; `v1,` by the secret of the webhook (HMAC-SHA256), ' +
    '`v1a,` by the key of the team (ed25519) that stands at /.well-known/webhook-signing-keys/{teamId}',
};

/** The `webhooks` section: one request for each type of event. */
function describeWebhooks(): object {
  return Object.fromEntries(
    EVENT_CATALOG.map(({ type, description, example }) => [
      type,
      {
        post: {
          operationId: `receive${eventSchemaName(type)}`,
          tags: ['Events'],
          summary: description,
          security: [],
          parameters: Object.entries(EVENT_HEADERS).map(([name, text]) => ({
            name,
            in: 'header',
            required: true,
            description: text,
            schema: { type: 'string' },
          })),
          requestBody: jsonBody({ $ref: `#/components/schemas/${eventSchemaName(type)}` }, { example }),
          responses: {
            '2XX': { description: 'Received. Anything else is tried again, for some three days' },
            '4XX': { description: 'Tried again; 410 unsubscribes the webhook, 429 waits for `Retry-After`' },
          },
        },
      },
    ]),
  );
}
