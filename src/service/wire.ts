/** Creates the HTTP server of a node from its parts and settings. */
import type { Config } from '../config/config.ts';
import { findWorkflowFile } from '../definitions/files.ts';
import { apiSecrets } from '../definitions/secrets.ts';
import { FeedAddresses } from '../http/feeds/addresses.ts';
import { FeedBodies } from '../http/feeds/feed-bodies.ts';
import { ConnectionLimits } from '../http/limits/connections.ts';
import { RateLimits } from '../http/limits/rate-limits.ts';
import { routes, routesOfNode } from '../http/routes.ts';
import { type App, createApp, type ServerParts } from '../http/server/app.ts';
import { streamMetrics } from '../http/server/node-metrics.ts';
import type { Services } from '../http/services.ts';
import { EventWaits, LongCalls } from '../http/streams/long-calls.ts';
import { Streams } from '../http/streams/streams.ts';
import type { Dashboard } from '../http/ui/dashboard.ts';
import type { Resolver } from '../net/resolver.ts';
import type { Sealer } from '../std/seal.ts';
import { Inspection } from '../webhooks/inspection.ts';
import type { Mailing } from '../webhooks/mail/mailing.ts';

/** Parts that are made elsewhere. All other parts are made here from the settings. */
type Given = Pick<
  Services,
  | 'store'
  | 'authenticator'
  | 'bodies'
  | 'definitions'
  | 'examiner'
  | 'node'
  | 'examine'
  | 'pushes'
  | 'isReady'
  | 'isStopping'
  | 'metrics'
> &
  Pick<ServerParts, 'log' | 'observer' | 'tracing' | 'servesApi' | 'certificate' | 'inFlight'> & {
    dashboard: Dashboard | undefined;
    sealer: Sealer;
    resolver: Resolver;
    mailing: Mailing;
    /** Removes the cached response bodies of a workflow. */
    forget(place: { teamId: string; workflowId: string }): Promise<void>;
    publicUrl(): string;
  };

export function createWire(config: Config, given: Given): App {
  const { dashboard, sealer, resolver, mailing, forget, publicUrl, ...parts } = given;
  const { store, log } = parts;
  const {
    allowNetworks: policy,
    trustProxy,
    rateLimitPerKey: perKey,
    rateLimitPerAddress: perAddress,
  } = config;
  const directory = config.workflowsDirectory;
  const eventWaits = new EventWaits(store);
  const longCalls = new LongCalls(store);
  const streams = new Streams({ store, longCalls, log });
  if (parts.metrics !== undefined) streamMetrics(parts.metrics, streams);
  const inspection = new Inspection({ store, sealer, policy, resolver, publicUrl });
  const feedBodies = new FeedBodies();
  const ofApi = [...routes, ...(dashboard?.routesBeside(routes) ?? [])];
  return createApp({
    ...parts,
    routes: parts.servesApi ? ofApi : routesOfNode,
    services: {
      ...parts,
      eventWaits,
      longCalls,
      streams,
      inspection,
      feedAddresses: new FeedAddresses({ sealer, publicUrl, log }),
      feedBodies,
      erasure: {
        store,
        sealer,
        directories: [config.dataDirectory, config.backupDirectory],
        forget: (place) => {
          feedBodies.forget(place);
          return forget(place);
        },
      },
      webhooks: { store, sealer, policy, resolver, mailing, log, limit: config.maxWebhooksPerWorkflow },
      quotas: config.quotas,
      ceilings: config.ceilings,
      apiSecrets: (team) => apiSecrets({ directory, team, environment: config.environment }),
      workflowFile: (of) => findWorkflowFile(directory, of),
      trustProxy,
      metricsAllow: config.metricsAllow,
      hasGuide: dashboard !== undefined,
    },
    sessions: dashboard?.sessions,
    lasting: [eventWaits, streams, inspection, feedBodies],
    rateLimits: perKey === null && perAddress === null ? undefined : new RateLimits({ perKey, perAddress }),
    connections: new ConnectionLimits({
      most: config.maxConnections,
      perAddress: config.maxAddressConnections,
      trustProxy,
      log,
    }),
    timeouts: {
      headersMs: config.headersTimeoutMs,
      requestMs: config.requestTimeoutMs,
      keepAliveMs: config.keepAliveTimeoutMs,
    },
    trustProxy,
    corsOrigins: config.corsOrigins,
  });
}
