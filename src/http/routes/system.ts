/** The state of the instance, for its operator. */
import { type EffectiveSetting, SETTING_ORIGINS } from '../../model/setting.ts';
import type { EventLoopDelay } from '../../observe/process-metrics.ts';
import { grouped } from '../../std/amounts.ts';
import { toIso, toIsoOrNull } from '../../std/clock.ts';
import { maskedUrl } from '../../std/printable.ts';
import { isoTime, isoTimeOrNull } from '../../std/shape.ts';
import type { Store } from '../../store/store.ts';
import { jsonResponse, objectSchema } from '../openapi/content.ts';
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
      oldestWaitingAt: toIsoOrNull(deliveries.oldestWaitingAt),
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

const integer = (description: string) => ({ type: 'integer', description });
const ms = (description: string) => ({ type: 'number', description });
const setting = objectSchema({
  name: { type: 'string', description: 'In `flowhook.yaml`' },
  variable: { type: 'string', description: 'In the environment' },
  value: { type: ['string', 'null'], description: '`***` for a secret that is set; null: there is none' },
  origin: { enum: SETTING_ORIGINS },
  from: { type: ['string', 'null'], description: 'Such as `--port` or `flowhook.yaml: port`' },
  sentence: { type: 'string' },
});

const complete = { type: 'boolean', description: 'Whether it was counted to the end' };

/** The same as JSON Schema. */
export const systemSchema = {
  ...objectSchema({
    version: { type: 'string', description: 'Of Flowhook' },
    node: { type: 'string', description: 'The version of Node' },
    platform: { type: 'string', description: 'Such as `linux x64`' },
    startedAt: isoTime,
    uptimeSeconds: integer('Since this node was started'),
    role: { type: 'string', description: 'What this node does: all, api, worker or sender' },
    nodeId: { type: 'string', description: 'The name of this node for as long as it runs' },
    url: { type: 'string', description: 'Under which others reach it, as far as it knows' },
    listening: objectSchema({ host: { type: 'string' }, port: { type: 'integer' } }),
    database: objectSchema({
      kind: { enum: ['sqlite', 'postgres'] },
      version: { type: 'string' },
      bytes: { type: 'integer' },
      walBytes: { type: ['integer', 'null'], description: 'The write-ahead log; null on PostgreSQL' },
      schema: integer('The version of the tables'),
    }),
    jobs: objectSchema(
      {
        queued: { type: 'integer' },
        running: { type: 'integer' },
        retrying: { type: 'integer' },
        complete,
      },
      'Of all teams',
    ),
    deliveries: objectSchema(
      {
        waiting: { type: 'integer' },
        oldestWaitingAt: { ...isoTimeOrNull, description: 'When the one was made that has waited longest' },
        openCircuits: integer(
          'Endpoints that this node leaves alone for now, because they were out of order',
        ),
        complete,
      },
      'Of all teams',
    ),
    eventLoop: objectSchema(
      { p50Ms: ms('Median'), p99Ms: ms('99th percentile'), maxMs: ms('Longest') },
      'How late this node was to whatever was due, in the last whole minute',
    ),
    memory: objectSchema(
      {
        residentBytes: { type: 'integer' },
        heapUsedBytes: { type: 'integer' },
        heapTotalBytes: { type: 'integer' },
        externalBytes: { type: 'integer' },
      },
      'Of this node, without the processes of its jobs',
    ),
    settings: { type: 'array', items: setting, description: 'Every setting with what holds on this node' },
  }),
  examples: [
    {
      version: '1.0.0',
      node: '26.10.0',
      platform: 'linux x64',
      startedAt: '2026-11-21T02:00:00.000Z',
      uptimeSeconds: 3_600,
      role: 'all',
      nodeId: 'local',
      url: 'http://127.0.0.1:8080',
      listening: { host: '127.0.0.1', port: 8_080 },
      database: { kind: 'sqlite', version: '3.50.4', bytes: 4_194_304, walBytes: 65_536, schema: 8 },
      jobs: { queued: 0, running: 1, retrying: 0, complete: true },
      deliveries: {
        waiting: 2,
        oldestWaitingAt: '2026-11-21T02:59:58.000Z',
        openCircuits: 0,
        complete: true,
      },
      eventLoop: { p50Ms: 0.1, p99Ms: 1.9, maxMs: 12.4 },
      memory: {
        residentBytes: 98_566_144,
        heapUsedBytes: 31_457_280,
        heapTotalBytes: 52_428_800,
        externalBytes: 4_194_304,
      },
      settings: [
        {
          name: 'port',
          variable: 'FLOWHOOK_PORT',
          value: '8080',
          origin: 'default',
          from: null,
          sentence: 'The port to listen on; 0 takes any free one.',
        },
      ],
    },
  ],
};
