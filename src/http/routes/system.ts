/** The state of the instance, for its operator. */
import type { EffectiveSetting } from '../../model/setting.ts';
import type { EventLoopDelay } from '../../observe/process-metrics.ts';
import { systemResource } from '../../resources/system.ts';
import { grouped } from '../../std/amounts.ts';
import { maskedUrl } from '../../std/printable.ts';
import type { Store } from '../../store/store.ts';
import { jsonResponse } from '../openapi/content.ts';
import type { KeyedCall, Operation } from '../route.ts';

/** Jobs, deliveries and endpoints are not counted beyond this. */
const MOST = 10_000;

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

/** GET /v1/system */
export const readSystem: Operation<KeyedCall> = {
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
