/** The service itself: whether it lives and is ready, its metrics, how it stands and what is wrong with it. */

import { Problem } from '../../model/error.ts';
import { shownChecks, systemChecksResource, systemResource } from '../../resources/system.ts';
import { grouped } from '../../std/amounts.ts';
import { maskedUrl } from '../../std/printable.ts';
import { choice, list, object, optional, raw, text } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { queryValues } from '../input/query.ts';
import { acceptedFormat } from '../negotiate.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { Call, KeyedCall, Operation } from '../route.ts';
import { authenticate, keyOf } from '../server/caller.ts';
import { hasAllowedAddress, isOwnHost } from '../server/metrics-access.ts';
import { renderProblem } from '../server/problem.ts';
import { type Check, readiness } from '../server/readiness.ts';
import type { NodeStatus } from '../services.ts';

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
export const ready: Operation<Call<'isReady' | 'isStopping' | 'node' | 'overload'>> = {
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
  errors: {
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

const REFUSAL =
  'Unauthorized: /metrics takes a key with the scope `operator`, in x-api-key or as `authorization: Bearer`, ' +
  'or a client whose address FLOWHOOK_METRICS_ALLOW names, asking under an address, a local name or FLOWHOOK_PUBLIC_URL';

/** GET /metrics */
export const readMetrics: Operation<
  Call<'authenticator' | 'metrics' | 'metricsAllow' | 'node' | 'trustProxy'>
> = {
  id: 'readMetrics',
  group: 'Service',
  summary: 'The numbers of this node, for Prometheus',
  description:
    'The text format 0.0.4. For clients whose address `FLOWHOOK_METRICS_ALLOW` names, and for keys with the scope ' +
    '`operator`, in `x-api-key` or as `authorization: Bearer`. Every node has its own. ' +
    'docs/reference/metrics.md lists them all.',
  weight: 'light',
  answer: {
    description: 'One line for each number',
    content: { 'text/plain': { schema: { type: 'string' } } },
  },
  errors: {
    unauthorized: 'The client is not one of those that need no key, and its key is not good',
    scope_missing: 'The key does not have the scope `operator`',
    route_not_found: '`FLOWHOOK_METRICS` is off',
  },

  async handle({ services, request, reply }) {
    const { metrics, metricsAllow, trustProxy, authenticator } = services;
    if (metrics === undefined) throw new Problem('route_not_found');
    const isKeyless =
      hasAllowedAddress(request, { allowed: metricsAllow, trustProxy }) &&
      isOwnHost(request.headers.host, services.node().url);
    if (!isKeyless) {
      const key = keyOf(request.raw) ?? bearerOf(request.headers.authorization);
      await authenticate(authenticator, key, 'operator').catch((error) => {
        throw error instanceof Problem && error.code === 'unauthorized'
          ? new Problem('unauthorized', { sentence: REFUSAL })
          : error;
      });
    }
    const text = await metrics.text();
    return reply.header('content-type', metrics.contentType).header('cache-control', 'no-store').send(text);
  },
};

/** The key as scrapers send it. */
function bearerOf(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

/** Jobs, deliveries and endpoints are not counted beyond this. */
const MOST = 10_000;

/** GET /v1/system */
export const readSystem: Operation<KeyedCall<'node'>> = {
  id: 'readSystem',
  group: 'Service',
  summary: 'How the instance stands: versions, database, work of all teams, this node, its settings',
  description:
    `For keys with the scope \`operator\`. Costs the same however much there is: nothing is counted beyond ` +
    `${grouped(MOST)}. Of several nodes it tells of the one that answers.`,
  answer: jsonResponse('How it stands', systemResource),

  async handle({ services: { store, node } }) {
    return shownSystem(store, node());
  },
};

async function shownSystem(store: Store, node: NodeStatus) {
  const [database, { jobs, deliveries }] = await Promise.all([
    store.status.database(),
    store.status.work({ most: MOST }),
  ]);
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  return systemResource.of({
    ...node,
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    uptimeSeconds: Math.max(0, Math.floor((store.now() - node.startedAt) / 1_000)),
    url: maskedUrl(node.url),
    database,
    jobs,
    deliveries: { ...deliveries, openCircuits: node.openCircuits },
    memory: {
      residentBytes: rss,
      heapUsedBytes: heapUsed,
      heapTotalBytes: heapTotal,
      externalBytes: external,
    },
  });
}

/** GET /v1/system/checks */
export const readSystemChecks: Operation<KeyedCall<'examine'>> = {
  id: 'readSystemChecks',
  group: 'Service',
  summary: 'What is wrong with the installation, what comes of it, and what to do',
  description:
    'For keys with the scope `operator`: what `flowhook doctor` finds, of the node that answers. It may take some ' +
    'seconds, on a large database half a minute. One examination is under way at a time, and its findings hold for 30 s. ' +
    'No request leaves the machine for it.',
  answer: jsonResponse('What was found', systemChecksResource),

  async handle({ services }) {
    return shownChecks(await services.examine());
  },
};
