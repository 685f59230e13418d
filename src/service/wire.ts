/** Creates the HTTP server of a node from its parts and its settings. */
import type { FastifyInstance } from 'fastify';
import type { Config } from '../config/config.ts';
import { createApp } from '../http/app.ts';
import { ConnectionLimits } from '../http/limits/connection-limits.ts';
import { RateLimits } from '../http/limits/rate-limits.ts';
import type { HttpServices } from '../http/services.ts';
import type { Resolver } from '../net/resolver.ts';
import type { Sealer } from '../std/seal.ts';
import { Inspection } from '../webhooks/inspection.ts';
import { findWorkflowFile } from '../workflows/files.ts';
import { apiSecrets } from '../workflows/secrets.ts';

/** Services that are created here from the settings. */
type Made =
  | 'apiSecrets'
  | 'ceilings'
  | 'connections'
  | 'corsOrigins'
  | 'erasure'
  | 'inspection'
  | 'metricsAllow'
  | 'quotas'
  | 'rateLimits'
  | 'timeouts'
  | 'trustProxy'
  | 'webhooks'
  | 'workflowFile';

export interface WireParts extends Omit<HttpServices, Made> {
  sealer: Sealer;
  resolver: Resolver;
  /** Removes the cached response bodies of a workflow. */
  forget(place: { teamId: string; workflowId: string }): Promise<void>;
  publicUrl(): string;
}

export function createWire(config: Config, given: WireParts): FastifyInstance {
  const { sealer, resolver, forget, publicUrl, ...parts } = given;
  const { store, log } = parts;
  const {
    allowNetworks: policy,
    trustProxy,
    rateLimitPerKey: perKey,
    rateLimitPerAddress: perAddress,
  } = config;
  const directory = config.workflowsDirectory;
  return createApp({
    ...parts,
    erasure: { store, sealer, directories: [config.dataDirectory, config.backupDirectory], forget },
    webhooks: { store, sealer, policy, resolver, log, limit: config.maxWebhooksPerWorkflow },
    quotas: config.quotas,
    ceilings: config.ceilings,
    inspection: new Inspection({ store, sealer, policy, resolver, publicUrl }),
    apiSecrets: (team) => apiSecrets({ directory, team, environment: config.environment }),
    workflowFile: (of) => findWorkflowFile(directory, of),
    ...(perKey === null && perAddress === null ? {} : { rateLimits: new RateLimits({ perKey, perAddress }) }),
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
    metricsAllow: config.metricsAllow,
    corsOrigins: config.corsOrigins,
  });
}
