/** What HTTP is given: the parts that operations use, and those that only the server itself needs. */

import type { ApiSecret, Ceilings } from '../definitions/api-bounds.ts';
import type { DefinitionChecks } from '../definitions/checks.ts';
import type { WorkflowFile } from '../definitions/files.ts';
import type { PushJobs } from '../jobs/push-job.ts';
import type { Examination } from '../model/finding.ts';
import type { Quotas } from '../model/quota.ts';
import type { NetworkList, TrustedProxies } from '../net/host.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { Observer } from '../observe/observer.ts';
import type { Tracing } from '../observe/tracing.ts';
import type { ErasureDeps } from '../records/erase.ts';
import type { RepresentationCache } from '../records/representation-cache.ts';
import type { Store } from '../store/store.ts';
import type { Authenticator } from '../teams/keys.ts';
import type { WebhookDeps } from '../webhooks/deps.ts';
import type { Inspection } from '../webhooks/inspection.ts';
import type { ConnectionLimits } from './limits/connection-limits.ts';
import type { InFlight } from './limits/in-flight.ts';
import type { Overload } from './limits/overload.ts';
import type { RateLimits } from './limits/rate-limits.ts';
import type { Timeouts } from './limits/timeouts.ts';
import type { NodeStatus } from './routes/system.ts';
import type { Certificate } from './server/certificate.ts';
import type { EventWaits } from './streams/event-waits.ts';
import type { LongCalls } from './streams/long-calls.ts';
import type { Streams } from './streams/streams.ts';
import type { UiServices } from './ui/services.ts';

/** What operations use. Each names in its type those that it needs: see `Call`. */
export interface Services {
  store: Store;
  log: Logger;
  authenticator: Authenticator;
  representations: RepresentationCache;
  erasure: ErasureDeps;
  webhooks: WebhookDeps;
  /** The quotas of teams that have none of their own. */
  quotas: Quotas;
  /** The most that definitions made over the API may ask for. */
  ceilings: Ceilings;
  /** Checks definitions made over the API, in a thread. */
  definitions: DefinitionChecks;
  inspection: Inspection;
  eventWaits: EventWaits;
  longCalls: LongCalls;
  streams: Streams;
  /** The state of this node. */
  node(): NodeStatus;
  /** What is wrong with the installation; at most 30 s old. */
  examine(): Promise<Examination>;
  pushes: PushJobs;
  /** The secrets that workflows made over the API may use. @param team its slug */
  apiSecrets(team: string): Promise<ReadonlyMap<string, ApiSecret>>;
  /** The file that defines a workflow, on a node that has it; `team` is a slug. */
  workflowFile(of: { team: string; id: string }): Promise<WorkflowFile | undefined>;
  /** Whether the service has started and is not stopping. */
  isReady(): boolean;
  isStopping(): boolean;
  overload: Overload;
  inFlight: InFlight;
  /** Undefined where metrics are off. */
  metrics?: Metrics;
  /** From where metrics are read without a key. */
  metricsAllow?: NetworkList | undefined;
  /** The proxies whose `x-forwarded-*` headers are believed. */
  trustProxy: TrustedProxies | false;
  /** Undefined where there is no dashboard. */
  ui?: UiServices;
}

/** What the server needs, whatever its operations are. */
export interface ServerParts
  extends Pick<Services, 'log' | 'authenticator' | 'overload' | 'inFlight' | 'trustProxy'> {
  observer: Observer;
  /** Undefined where tracing is off. */
  tracing?: Tracing | undefined;
  /** Undefined unless the operator has set some. */
  rateLimits?: RateLimits;
  connections: ConnectionLimits;
  timeouts: Timeouts;
  /** Whether this node has the API, or only health checks and metrics. */
  servesApi: boolean;
  /** With one the server speaks HTTPS, else HTTP. */
  certificate?: Certificate;
  /** The origins whose pages may call the API from a browser; `*` for all. */
  corsOrigins: readonly string[];
  /** What must be ended before the server can close. */
  lasting: readonly { close(): Promise<void> | void }[];
}
