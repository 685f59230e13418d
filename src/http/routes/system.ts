/** The service itself: liveness, readiness, metrics, status and health checks. */

import { Problem } from '../../model/error.ts';
import { shownChecks, systemChecksResource, systemResource } from '../../resources/system.ts';
import { grouped } from '../../std/amounts.ts';
import { maskedUrl } from '../../std/printable.ts';
import { choice, list, object, optional, raw, text } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { hashKey } from '../../teams/keys.ts';
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

/** GET /livez */
export const live: Operation<Call> = {
  id: 'readLiveness',
  weight: 'light',
  group: 'Service',
  summary: 'Check that the process is alive',
  answer: jsonResponse('Process alive', object(ok)),

  async handle() {
    return { status: 'ok' };
  },
};

/** GET /readyz */
export const ready: Operation<Call<'isReady' | 'isStopping' | 'node' | 'inFlight'>> = {
  id: 'readReadiness',
  weight: 'light',
  group: 'Service',
  summary: 'Check that the service is ready',
  description:
    'Returns 200 if this node has started and is not stopping, and its database responds and is migrated; ' +
    '503 otherwise. With `?verbose`, either response lists the checks, as lines of text if `Accept` prefers ' +
    '`text/plain`.',
  parameters: [
    {
      name: 'verbose',
      in: 'query',
      description: 'Flag to list the checks in the response; the value is ignored',
      schema: { type: 'string', minLength: 0 },
    },
  ],
  answer: jsonResponse(
    'Service ready',
    object({
      ...ok,
      checks: optional(
        list(
          object({
            name: text(),
            status: choice(
              ['ok', 'failed', 'off', 'noted'],
              '`off`: not a task of this node; `noted`: information that does not affect readiness',
            ),
            message: text(),
          }),
          'Checks, present only with `?verbose`',
        ),
      ),
    }),
  ),
  errors: {
    not_ready: 'Service not ready',
    stopping: 'Service stopping',
    database_unavailable: 'Database not available',
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
  'Unauthorized: send a key with the scope `operator`, in x-api-key or as `authorization: Bearer`. To read metrics ' +
  'without a key, add the address of the client to FLOWHOOK_METRICS_ALLOW, and use an IP address, a local name or ' +
  'FLOWHOOK_PUBLIC_URL as host';

/** GET /metrics */
export const readMetrics: Operation<
  Call<'authenticator' | 'metrics' | 'metricsAllow' | 'node' | 'trustProxy'>
> = {
  id: 'readMetrics',
  group: 'Service',
  summary: 'Read metrics',
  description:
    'Returns the metrics of this node in the Prometheus text format 0.0.4. Requires a key with the scope `operator`, in ' +
    '`x-api-key` or as `authorization: Bearer`, or a client address in `FLOWHOOK_METRICS_ALLOW` and a `Host` that ' +
    'is an IP address, a local name or `FLOWHOOK_PUBLIC_URL`. The page "Metrics" of the guide lists all metrics.',
  weight: 'light',
  answer: {
    description: 'Metrics, one per line',
    content: { 'text/plain': { schema: { type: 'string' } } },
  },
  errors: {
    unauthorized: 'No valid key sent, and this client address or `Host` is not allowed without one',
    scope_missing: 'API key without the scope `operator`',
    route_not_found: '`FLOWHOOK_METRICS` is off',
  },

  async handle({ services, request, reply }) {
    const { metrics, metricsAllow, trustProxy, authenticator } = services;
    if (metrics === undefined) throw new Problem('route_not_found');
    const isKeyless =
      hasAllowedAddress(request, { allowed: metricsAllow, trustProxy }) &&
      isOwnHost(request.headers.host, services.node().url);
    if (!isKeyless) {
      const hash = keyOf(request.raw) ?? bearerOf(request.headers.authorization);
      try {
        await authenticate(authenticator, hash, 'operator');
      } catch (error) {
        throw error instanceof Problem && error.code === 'unauthorized'
          ? new Problem('unauthorized', { sentence: REFUSAL })
          : error;
      }
    }
    const text = await metrics.text();
    return reply.header('content-type', metrics.contentType).header('cache-control', 'no-store').send(text);
  },
};

/** The hash of the key of an `authorization` header, which scrapers send. */
function bearerOf(authorization: string | undefined): string | undefined {
  const key = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return key === undefined ? undefined : hashKey(key);
}

/** Maximum number of jobs, and of deliveries, that are counted. */
const MOST = 10_000;

/** GET /v1/system */
export const readSystem: Operation<KeyedCall<'node'>> = {
  id: 'readSystem',
  group: 'Service',
  summary: 'Read the state of the instance',
  description:
    'Describes the versions, the database, the work of all teams, and the settings. Requires the scope `operator`. Counts ' +
    `stop at ${grouped(MOST)}. With several nodes, the response describes the node that sends it.`,
  answer: jsonResponse('State of the instance', systemResource),

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
  summary: 'Run health checks',
  description:
    'Returns what `flowhook doctor` finds on the node that responds. Requires the scope `operator`. Takes a few seconds, ' +
    'or half a minute on a large database. Concurrent calls share one run of the checks, and findings are cached for ' +
    '30 seconds. No check sends requests to other hosts.',
  answer: jsonResponse('Findings', systemChecksResource),

  async handle({ services }) {
    return shownChecks(await services.examine());
  },
};
