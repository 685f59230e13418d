/** Health checks: liveness and readiness. They need no key and are not logged. */
import { choice, list, object, optional, raw, text } from '../../std/shape.ts';
import { acceptedFormat } from '../negotiate.ts';
import { jsonResponse } from '../openapi/content.ts';
import { queryValues } from '../query.ts';
import type { Call, Operation } from '../route.ts';
import { renderProblem } from '../server/problem.ts';
import { type Check, readiness } from '../server/readiness.ts';

const ok = { status: raw<'ok'>({ const: 'ok' }) };

/** GET /livez: the process answers. */
export const live: Operation<Call> = {
  id: 'live',
  weight: 'light',
  group: 'Service',
  summary: 'Whether the process lives',
  answer: jsonResponse('Yes', object(ok)),

  async handle() {
    return { status: 'ok' };
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
  answer: jsonResponse(
    'Yes',
    object({
      ...ok,
      checks: optional(
        list(
          object({ name: text(), status: choice(['ok', 'failed', 'off', 'noted']), message: text() }),
          'With `?verbose` alone',
        ),
      ),
    }),
  ),
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
