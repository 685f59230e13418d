/** Makes an OpenAPI 3.1 document of the routes. */
import { type ErrorCode, Problem } from '../../model/error.ts';
import { plainPath } from '../match.ts';
import type { Parameter, Refusal, Route } from '../route.ts';
import { jsonResponse } from './content.ts';
import { describeWebhooks } from './describe-events.ts';
import { schemas } from './schemas.ts';
import { withExamples } from './with-examples.ts';
import { withTypes } from './with-types.ts';

/** The whole document. Its version is that of the contract, not of the software. */
export function describeRoutes(routes: readonly Route[]) {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = plainPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route) };
  }
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Workflow Data and Webhook Service',
      version: '1.0.0',
      description:
        'Workflows run as jobs, jobs publish records, records are read here, and webhooks report what changed. ' +
        'Every error answer is `{ "error": string }`; its code is in the header `x-error-code`, ' +
        'the id to find it by in the log in `x-request-id`. Beside what an operation lists, each may answer 405 ' +
        'with `allow` to a method that its path does not take, and 503 while the service starts, stops, is ' +
        'overloaded or cannot reach its database: try again shortly, with the same `idempotency-key` where there ' +
        'is one. Where the operator has set rate limits, it may also answer 429 with `retry-after`.',
    },
    tags: [...new Set(routes.map((route) => route.operation.group)), 'Events'].map((name) => ({ name })),
    paths,
    webhooks: describeWebhooks(),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
      schemas,
    },
  };
  return withExamples(withTypes(document));
}

function describe({ operation, scope }: Route): object {
  const refusals = { ...(scope === null ? {} : { unauthorized: 'Unauthorized' }), ...operation.refusals };
  const parameters = [...(operation.parameters ?? []), ...(operation.tagged ? [IF_NONE_MATCH] : [])];
  return {
    operationId: operation.id,
    tags: [operation.group],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    security: scope === null ? [] : [{ apiKey: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(operation.requestBody === undefined ? {} : { requestBody: operation.requestBody }),
    responses: {
      200: operation.tagged ? withTag(operation.answer) : operation.answer,
      ...(operation.tagged
        ? { 304: { description: 'It still is what `If-None-Match` names', headers: TAG } }
        : {}),
      ...Object.fromEntries(
        Object.entries(refusals).map(([code, refusal]) => [
          new Problem(code as ErrorCode).status,
          refused(refusal),
        ]),
      ),
    },
  };
}

const IF_NONE_MATCH: Parameter = {
  name: 'if-none-match',
  in: 'header',
  description: 'The `ETag` of what the client has',
  schema: { type: 'string' },
};
const TAG = { etag: { description: 'Names this answer', schema: { type: 'string' } } };

function withTag(answer: { headers?: object }): object {
  return { ...answer, headers: { ...answer.headers, ...TAG } };
}

function refused(refusal: Refusal): object {
  if (typeof refusal === 'string') return jsonResponse(refusal, 'Error');
  return jsonResponse(refusal.description, 'Error', refusal.headers);
}
