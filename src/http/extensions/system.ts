/** How the instance stands: for whoever runs it. */
import type { EffectiveSetting } from '../../model/setting.ts';
import type { EventLoopDelay } from '../../observe/event-loop.ts';
import { grouped } from '../../std/amounts.ts';
import { toIso } from '../../std/clock.ts';
import { maskedUrl } from '../../std/masked-url.ts';
import type { Store } from '../../store/store.ts';
import type { KeyedCall, Operation } from '../route.ts';
import { jsonResponse } from '../schemas.ts';
import { isoOrNull } from './shown-webhook.ts';

/** Jobs, deliveries and endpoints are counted up to here. */
const MOST = 10_000;

/** What is to be known of this node that no table tells. */
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

export type ShownSystem = Awaited<ReturnType<typeof shownSystem>>;

/** GET /v1/system */
export const readSystem: Operation<KeyedCall> = {
  id: 'readSystem',
  group: 'Service',
  summary: 'How the instance stands: versions, database, work of all teams, this node, its settings',
  description:
    `For keys with the scope \`operator\`. Costs the same however much there is: nothing is counted beyond ` +
    `${grouped(MOST)}. Of several nodes it tells of the one that answers.`,
  answer: jsonResponse('How it stands', 'System'),

  async handle({ services: { store, node }, reply }) {
    reply.header('cache-control', 'no-store');
    return shownSystem(store, node());
  },
};

async function shownSystem(store: Store, node: NodeStatus) {
  const [database, { jobs, deliveries }] = await Promise.all([
    store.status.database(),
    store.status.work({ most: MOST }),
  ]);
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
  const { version, role, nodeId, url, listening, openCircuits, eventLoop } = node;
  return {
    version,
    node: process.versions.node,
    platform: `${process.platform} ${process.arch}`,
    startedAt: toIso(node.startedAt),
    uptimeSeconds: Math.max(0, Math.floor((store.now() - node.startedAt) / 1_000)),
    role,
    nodeId,
    url: maskedUrl(url),
    listening,
    database: {
      kind: database.kind,
      version: database.version,
      bytes: database.bytes,
      walBytes: database.walBytes,
      schema: database.schema,
    },
    jobs: { queued: jobs.queued, running: jobs.running, retrying: jobs.retrying, complete: jobs.complete },
    deliveries: {
      waiting: deliveries.waiting,
      oldestWaitingAt: isoOrNull(deliveries.oldestWaitingAt),
      openCircuits,
      complete: deliveries.complete,
    },
    eventLoop: { p50Ms: eventLoop.p50Ms, p99Ms: eventLoop.p99Ms, maxMs: eventLoop.maxMs },
    memory: {
      residentBytes: rss,
      heapUsedBytes: heapUsed,
      heapTotalBytes: heapTotal,
      externalBytes: external,
    },
    settings: node.settings.map(({ name, variable, value, origin, from, sentence }) => ({
      name,
      variable,
      value,
      origin,
      from,
      sentence,
    })),
  };
}
