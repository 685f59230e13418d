/** The metrics of this node, for Prometheus. */
import { Problem } from '../../model/error.ts';
import type { Call, Operation } from '../route.ts';
import { authenticate, keyOf } from '../server/caller.ts';
import { hasAllowedAddress } from '../server/metrics-access.ts';
import { isOwnHost } from '../server/own-host.ts';

const REFUSAL =
  'Unauthorized: /metrics takes a key with the scope `operator`, in x-api-key or as `authorization: Bearer`, ' +
  'or a client whose address FLOWHOOK_METRICS_ALLOW names, asking under an address, a local name or FLOWHOOK_PUBLIC_URL';

/** GET /metrics */
export const readMetrics: Operation<Call> = {
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
  refusals: {
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
