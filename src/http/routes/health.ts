/** Health checks: liveness and readiness. They need no key and are not logged. */
import { acceptedFormat } from '../negotiate.ts';
import { jsonResponse } from '../openapi/content.ts';
import { queryValues } from '../query.ts';
import type { Call, Operation } from '../route.ts';
import { renderProblem } from '../server/problem.ts';
import { type Check, readiness } from '../server/readiness.ts';

const ok = jsonResponse('Yes', {
  type: 'object',
  required: ['status'],
  properties: { status: { const: 'ok' } },
});

/** GET /livez: the process answers. */
export const live: Operation<Call> = {
  id: 'live',
  weight: 'light',
  group: 'Service',
  summary: 'Whether the process lives',
  answer: ok,

  async handle() {
    return { status: 'ok' };
  },
};

/** The checks in a verbose answer. */
const checks = {
  type: 'array',
  description: 'With `?verbose` alone',
  items: {
    type: 'object',
    required: ['name', 'status', 'message'],
    properties: {
      name: { type: 'string' },
      status: { enum: ['ok', 'failed', 'off', 'noted'] },
      message: { type: 'string' },
    },
  },
};

/** GET /readyz: the node has started, is not stopping, and its database answers and is migrated. */
export const ready: Operation<Call> = {
  id: 'ready',
  weight: 'light',
  group: 'Service',
  summary: 'Whether the service can take requests',
  description:
    'The status alone decides. With `?verbose` the answer says what was looked at, also that of a 503; as lines of ' +
    'text for those who accept `text/plain`.',
  parameters: [
    {
      name: 'verbose',
      in: 'query',
      description: 'Says what was looked at',
      schema: { type: 'string', minLength: 0 },
    },
  ],
  answer: jsonResponse('Yes', {
    type: 'object',
    required: ['status'],
    properties: { status: { const: 'ok' }, checks },
  }),
  refusals: {
    not_ready: 'Not now',
    stopping: 'The service is stopping',
    database_unavailable: 'The database does not answer',
  },

  async handle({ services, query, request, reply }) {
    const { problem, checks } = await readiness(services);
    if (queryValues(query, 'verbose').length === 0) {
      if (problem !== undefined) throw problem;
      return { status: 'ok' };
    }
    const answer = problem && renderProblem(problem);
    if (answer !== undefined) reply.code(answer.status).headers(answer.headers);
    reply.header('cache-control', 'no-store');
    if (acceptedFormat(request.headers.accept, ['text']) === 'text') {
      return reply.type('text/plain; charset=utf-8').send(asLines(checks));
    }
    return reply.send(
      problem === undefined
        ? { status: 'ok', checks }
        : { error: problem.message, status: 'unavailable', checks },
    );
  },
};

function asLines(checks: readonly Check[]): string {
  return checks
    .map(({ name, status, message }) => `${status.padEnd(6)} ${name.padEnd(10)} ${message}\n`)
    .join('');
}
