/** The parts of the service that operations use. */
import type { ServerResponse } from 'node:http';
import type { ApiSecret, Ceilings } from '../definitions/api-bounds.ts';
import type { DefinitionChecks } from '../definitions/checks.ts';
import type { WorkflowFile } from '../definitions/files.ts';
import type { PushJobs } from '../jobs/push-job.ts';
import type { EffectiveSetting, Examination } from '../model/finding.ts';
import type { Quotas } from '../model/quota.ts';
import type { NetworkList, TrustedProxies } from '../net/host.ts';
import type { EventLoopDelay } from '../observe/event-loop.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { BodyCache } from '../records/body-cache.ts';
import type { ErasureDeps } from '../records/erase.ts';
import type { Store } from '../store/store.ts';
import type { Authenticator } from '../teams/keys.ts';
import type { Inspection } from '../webhooks/inspection.ts';
import type { Examiner } from '../webhooks/rules/examiner.ts';
import type { WebhookDeps } from '../webhooks/sealed.ts';
import type { FeedAddresses } from './feeds/addresses.ts';
import type { FeedBodies } from './feeds/feed-bodies.ts';
import type { EventWaits, LongCalls } from './streams/long-calls.ts';
import type { Streams } from './streams/streams.ts';

/** All services. The type of an operation lists those that it needs: see `Call`. */
export interface Services {
  store: Store;
  log: Logger;
  authenticator: Authenticator;
  bodies: BodyCache;
  erasure: ErasureDeps;
  webhooks: WebhookDeps;
  /** Default quotas, for teams without their own. */
  quotas: Quotas;
  /** Upper limits for definitions made over the API. */
  ceilings: Ceilings;
  /** Checks definitions made over the API in a separate thread. */
  definitions: DefinitionChecks;
  inspection: Inspection;
  feedAddresses: FeedAddresses;
  feedBodies: FeedBodies;
  /** Applies filters for readers, and tries rules. */
  examiner: Examiner;
  eventWaits: EventWaits;
  longCalls: LongCalls;
  streams: Streams;
  node(): NodeStatus;
  /** Problems of the installation; at most 30 s old. */
  examine(): Promise<Examination>;
  pushes: PushJobs;
  /** The secrets that workflows made over the API may use. @param team the team's slug */
  apiSecrets(team: string): Promise<ReadonlyMap<string, ApiSecret>>;
  /** The file that defines a workflow, if this node has the file; `team` is a slug. */
  workflowFile(of: { team: string; id: string }): Promise<WorkflowFile | undefined>;
  /** Whether the service has started and is not stopping. */
  isReady(): boolean;
  isStopping(): boolean;
  /** The requests in flight. `rest` stops counting a request as work because it only waits. */
  inFlight: {
    readonly state: { limit: number; working: number; shed: number; isShortOfMemory: boolean };
    rest(response: ServerResponse): void;
  };
  /** Undefined if metrics are off. */
  metrics: Metrics | undefined;
  /** Networks whose clients may read metrics without a key. */
  metricsAllow: NetworkList | undefined;
  /** The proxies whose `x-forwarded-*` headers are trusted. */
  trustProxy: TrustedProxies | false;
  /** Whether this node has the dashboard and the guide. */
  hasGuide: boolean;
}

/** The state of this node that is not in the database. */
export interface NodeStatus {
  version: string;
  role: string;
  nodeId: string;
  /** Epoch milliseconds. */
  startedAt: number;
  url: string;
  listening: { host: string; port: number };
  openCircuits: number;
  eventLoop: EventLoopDelay;
  settings: readonly EffectiveSetting[];
}
