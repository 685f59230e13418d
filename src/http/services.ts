/** What operations use of the service. */
import type { ServerResponse } from 'node:http';
import type { ApiSecret, Ceilings } from '../definitions/api-bounds.ts';
import type { DefinitionChecks } from '../definitions/checks.ts';
import type { WorkflowFile } from '../definitions/files.ts';
import type { PushJobs } from '../jobs/push-job.ts';
import type { EffectiveSetting, Examination } from '../model/finding.ts';
import type { Quotas } from '../model/quota.ts';
import type { NetworkList, TrustedProxies } from '../net/host.ts';
import type { Logger } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { EventLoopDelay } from '../observe/process-metrics.ts';
import type { BodyCache } from '../records/body-cache.ts';
import type { ErasureDeps } from '../records/erase.ts';
import type { Store } from '../store/store.ts';
import type { Authenticator } from '../teams/keys.ts';
import type { Inspection } from '../webhooks/inspection.ts';
import type { WebhookDeps } from '../webhooks/sealed.ts';
import type { EventWaits, LongCalls } from './streams/long-calls.ts';
import type { Streams } from './streams/streams.ts';

/** Each operation names in its type those that it needs: see `Call`. */
export interface Services {
  store: Store;
  log: Logger;
  authenticator: Authenticator;
  bodies: BodyCache;
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
  overload: { readonly state: { limit: number; working: number; shed: number; isShortOfMemory: boolean } };
  /** Makes a request count no longer as work, because it only waits from now on. */
  inFlight: { rest(answer: ServerResponse): void };
  /** Undefined where metrics are off. */
  metrics: Metrics | undefined;
  /** From where metrics are read without a key. */
  metricsAllow: NetworkList | undefined;
  /** The proxies whose `x-forwarded-*` headers are believed. */
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
