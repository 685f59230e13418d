/** Builds an OpenAPI 3.1 document from the routes, and from the events that webhooks receive. */
import { type ErrorCode, statusOf } from '../../model/error.ts';
import { EVENT_CATALOG } from '../../model/event-catalog.ts';
import { errorResource } from '../../resources/error.ts';
import { eventSchemaName } from '../../resources/event.ts';
import { isStrict } from '../input/strict.ts';
import type { Answer, Contents, Operation, Parameter, Refusal, Route } from '../route.ts';
import { plainPath } from '../server/match.ts';
import { jsonBody, jsonResponse, RETRY_AFTER } from './content.ts';
import { exampleOf } from './examples.ts';
import { answerName, requestName, SchemaNames } from './schema-names.ts';
import { schemas } from './schemas.ts';

const DESCRIPTION =
  'Flowhook runs workflows as jobs and publishes their results as versioned records. Read the records over HTTP, or ' +
  'subscribe webhooks to be notified of changes. Errors are `{ "error": string }`, with a code for programs in the ' +
  'header `x-error-code`.';

const TAGS: Readonly<Record<Operation<never>['group'], string>> = {
  Workflows: 'Define, run and pause workflows, and read or push their records',
  Integrations: 'Subscribe and manage webhooks, and inspect and replay their deliveries',
  Inspectors: 'Create temporary webhook receivers for trying webhooks',
  Events: 'Read events, and receive them as webhook requests',
  Jobs: 'List, read, cancel and rerun jobs',
  Team: 'Manage API keys, and read usage and the audit log',
  Service: 'Read the health, the metrics and the API description of the service',
};

/** The whole document. Its version is the version of the contract, not of the software. */
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
      title: 'Flowhook API',
      version: '1.0.0',
      description: DESCRIPTION,
    },
    servers: [
      {
        url: '{baseUrl}',
        description: 'Your Flowhook installation',
        variables: {
          baseUrl: {
            default: 'http://127.0.0.1:8080',
            description: 'URL of the installation. `flowhook serve` listens on the default',
          },
        },
      },
    ],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
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
  // The function `read` of query parameters is left out.
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
        ? {
            304: withHeaders({ description: 'Not changed: `If-None-Match` has the current `ETag`' }, TAG),
          }
        : {}),
      ...(operation.otherAnswers?.default === undefined
        ? { ...refusedBy(route), ...SHARED_BY_STATUS }
        : anyOf(operation.otherAnswers.default, { ...refusedBy(route), ...SHARED_IN_PLACE })),
    },
  };
}

/** The errors of a route whose success may have any of these statuses too. Each error gets the content of both. */
function anyOf(answer: Answer, errors: Record<number, Answer>): Record<string, Answer> {
  return Object.fromEntries(
    Object.entries(errors).map(([status, error]) => [
      status,
      { ...error, content: { ...error.content, ...answer.content } },
    ]),
  );
}

/** The errors of a route, by status: declared by its operation, or implied by its key, scope or input checks. */
function refusedBy({ operation, scope, method }: Route): Record<number, Answer> {
  const isFrozen = operation.frozen === true;
  const codes = Object.entries({
    ...(scope === null ? {} : { unauthorized: 'Unauthorized' }),
    ...(scope === null || scope === 'any' || isFrozen
      ? {}
      : { scope_missing: 'API key without the required scope' }),
    ...operation.errors,
  }) as [ErrorCode, Refusal][];
  const own = Map.groupBy(codes, ([code]) => statusOf(code, { isFrozen }));
  const strict: Partial<Record<ErrorCode, string>> = isStrict(operation)
    ? {
        field_invalid: 'Unknown parameter or field',
        ...(method === 'GET' ? {} : { body_too_large: 'Request body too large' }),
        ...(operation.requestBody === undefined ? {} : { content_unsupported: 'Request body is not JSON' }),
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
  description: '`ETag` of an earlier response. Returns 304 if the content is unchanged',
  schema: { type: 'string' },
};
const TAG = {
  etag: { description: 'Entity tag of the response, for `If-None-Match`', schema: { type: 'string' } },
};

/** The headers of every response, and of every error. */
const HEADERS = {
  'x-request-id': {
    description: 'Request ID, for finding the request in the log of the service',
    schema: { type: 'string' },
  },
  'x-error-code': {
    description: 'Error code for programs. The page "Errors" of the guide lists all codes',
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

/** The errors that any operation may return. */
const SHARED: readonly SharedRefusal[] = [
  {
    code: 'rate_limited',
    name: 'TooManyRequests',
    refusal: {
      description: 'Too many requests for the rate limit that the operator has set',
      headers: { 'retry-after': RETRY_AFTER },
    },
  },
  { code: 'internal', name: 'InternalError', refusal: 'Internal error' },
  {
    code: 'overloaded',
    name: 'Unavailable',
    refusal: {
      description:
        'Service starting, stopping or overloaded, or its database or disk not available. Retry shortly. If ' +
        'the request had an `idempotency-key`, send the same key again',
      headers: { 'retry-after': RETRY_AFTER },
    },
  },
];
/** This error depends only on the path and the method, so no operation returns it. */
const METHOD_NOT_ALLOWED: SharedRefusal = {
  code: 'method_not_allowed',
  name: 'MethodNotAllowed',
  refusal: {
    description: 'Method not allowed for this path',
    headers: { allow: 'Allowed methods of the path' },
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

/** @param errors errors with the same status */
function refused(errors: readonly Refusal[]): Answer {
  const all = errors.map((one) => (typeof one === 'string' ? { description: one, headers: {} } : one));
  const sentences = all.map(({ description }, at) => (at === 0 ? description : continued(description)));
  const last = sentences.length === 2 ? ', or ' : '; or ';
  const answer = jsonResponse(
    [sentences.slice(0, -1).join('; '), ...sentences.slice(-1)].filter((part) => part !== '').join(last),
    errorResource,
    Object.assign({}, ...all.map(({ headers }) => headers)),
  );
  return withHeaders(answer, ERROR_CODE);
}

/** The sentence in the form in which it follows `or`: with its first letter in lower case. */
function continued(sentence: string): string {
  return sentence.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
}

const EVENT_HEADERS = {
  'webhook-id': 'Event ID: identical in every attempt, so that receivers can detect duplicates',
  'webhook-timestamp': 'Time of the signature, in seconds since 1970',
  'webhook-signature':
    'Space-separated signatures (Standard Webhooks 1.0). `v1,` is followed by an HMAC-SHA256 made with the secret of ' +
    'the webhook. `v1a,` is followed by an ed25519 signature made with the key of the team. There is one once ' +
    'somebody has read the public key at `/.well-known/webhook-signing-keys/{teamId}`',
};

/** The `webhooks` section: one request for each event type. */
function describeWebhooks(): object {
  return Object.fromEntries(
    EVENT_CATALOG.map(({ type, description, example }) => [
      type,
      {
        post: {
          operationId: `receive${eventSchemaName(type)}`,
          tags: ['Events'],
          summary: `Receive ${type}`,
          description,
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
            '2XX': {
              description:
                'Event received. After any other status except 410, the request is retried for about three days',
            },
            '4XX': {
              description:
                'Request retried. 410 unsubscribes the webhook; with 429, `Retry-After` delays the next attempt',
            },
          },
        },
      },
    ]),
  );
}
