/** Routes in, an OpenAPI 3.1 document out. */
import { type ErrorCode, Problem } from '../model/error.ts';
import { describeWebhooks } from './describe-webhooks.ts';
import { plainPath } from './match.ts';
import type { Refusal, Route } from './route.ts';
import { jsonResponse, schemas } from './schemas.ts';

/** Describes every route. The version counts the contract's shape, not the software's. */
export function describeRoutes(routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = plainPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Workflow Data and Webhook Service',
      version: '1.0.0',
      description:
        'Workflows run as jobs, jobs publish records, records are read here, and webhooks are told. ' +
        'Every error answer is `{ "error": string }`; its code is in the header `x-error-code`, ' +
        'the id to find it by in the log in `x-request-id`.',
    },
    tags: [...new Set(routes.map((route) => route.operation.group)), 'Events'].map((name) => ({ name })),
    paths,
    webhooks: describeWebhooks(),
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
      schemas,
    },
  };
}

function describe({ operation, scope }: Route): object {
  const refusals = { ...(scope === null ? {} : { unauthorized: 'Unauthorized' }), ...operation.refusals };
  return {
    operationId: operation.id,
    tags: [operation.group],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    security: scope === null ? [] : [{ apiKey: [] }],
    ...(operation.parameters === undefined ? {} : { parameters: operation.parameters }),
    ...(operation.requestBody === undefined ? {} : { requestBody: operation.requestBody }),
    responses: {
      200: operation.answer,
      ...Object.fromEntries(
        Object.entries(refusals).map(([code, refusal]) => [
          new Problem(code as ErrorCode).status,
          refused(refusal),
        ]),
      ),
    },
  };
}

function refused(refusal: Refusal): object {
  if (typeof refusal === 'string') return jsonResponse(refusal, 'Error');
  return jsonResponse(refusal.description, 'Error', refusal.headers);
}
