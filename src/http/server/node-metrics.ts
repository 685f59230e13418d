/**
 * Metrics that are read from this node and from the database at each scrape. `observe/work-metrics.ts` counts requests,
 * jobs and deliveries as they happen.
 */
import { statfs } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Metrics } from '../../observe/metrics.ts';
import type { BodyCache } from '../../records/body-cache.ts';
import { listBackups } from '../../store/backup-files.ts';
import { oldestDecisionAt } from '../../store/oldest-decision.ts';
import type { Store } from '../../store/store.ts';
import type { DeliveryEngine } from '../../webhooks/delivery-engine.ts';
import type { InFlight } from '../limits/requests.ts';

/** Maximum number of jobs and deliveries that are counted. */
const MOST = 10_000;
/** How long values read from the database are cached, and how long a scrape waits for them. */
const DATABASE_READ = { keepMs: 3_000, withinMs: 2_000 };
/** Like `DATABASE_READ`, for disks and directories. */
const DISK_READ = { keepMs: 30_000, withinMs: 1_000 };

export interface MeasuredNode {
  version: string;
  role: string;
  databaseKind: 'sqlite' | 'postgres';
  store: Store;
  lanes: DeliveryEngine;
  bodies: BodyCache;
  inFlight: InFlight;
  isReady(): boolean;
  dataDirectory: string;
  /** Where backups are and how often they are made; undefined on PostgreSQL, which has its own tools. */
  backups: { directory: string; everyMs: number | null } | undefined;
}

/** Registers the gauges of a node. */
export function nodeMetrics(metrics: Metrics, node: MeasuredNode): void {
  registerBuild(metrics, node);
  registerRequests(metrics, node);
  registerDatabase(metrics, node.store);
  registerLanes(metrics, node.lanes);
  registerDisks(metrics, node);
}

/** Registers metrics that only the HTTP application knows. */
export function streamMetrics(metrics: Metrics, streams: { readonly size: number }): void {
  metrics.gauge({
    name: 'flowhook_streams_open',
    help: 'Streams of events and of logs that are open.',
    read: () => streams.size,
  });
}

function registerBuild(metrics: Metrics, { version, role, databaseKind, isReady }: MeasuredNode): void {
  const labels = { version, node_version: process.versions.node, role, database: databaseKind };
  metrics.gauge({
    name: 'flowhook_build_info',
    help: 'Always 1. The labels describe this node.',
    labels: Object.keys(labels),
    read: () => [{ labels, value: 1 }],
  });
  metrics.gauge({
    name: 'flowhook_ready',
    help: 'Whether this node has started and is not stopping: 1 or 0.',
    read: () => Number(isReady()),
  });
}

function registerRequests(metrics: Metrics, { inFlight, bodies }: MeasuredNode): void {
  metrics.gauge({
    name: 'http_server_active_requests',
    help: 'Requests whose response is not complete, including streams and long polls.',
    read: () => inFlight.size,
  });
  metrics.gauge({
    name: 'flowhook_http_concurrency_limit',
    help: 'Maximum number of concurrent requests. Lowered while work waits too long.',
    read: () => inFlight.state.limit,
  });
  metrics.gauge({
    name: 'flowhook_http_shed_total',
    help: 'Requests that were refused because of overload. No other metric counts them.',
    grows: true,
    read: () => inFlight.state.shed,
  });
  metrics.gauge({
    name: 'flowhook_representation_cache_bytes',
    help: 'Disk space used by cached responses, including those being built.',
    read: () => bodies.size.bytes,
  });
  metrics.gauge({
    name: 'flowhook_representation_cache_files',
    help: 'Number of cached responses.',
    read: () => bodies.size.files,
  });
}

function registerDatabase(metrics: Metrics, store: Store): void {
  const latest = metrics.source({ ...DATABASE_READ, read: () => readAll(store) });
  metrics.gauge({
    name: 'flowhook_database_up',
    help: 'Whether the database responded within 2 s: 1 or 0. While it is 0, metrics read from the database are missing.',
    read: () => Number(latest() !== undefined),
  });
  metrics.gauge({
    name: 'flowhook_database_bytes',
    help: 'Size of the database, without its write-ahead log.',
    read: () => latest()?.database.bytes,
  });
  metrics.gauge({
    name: 'flowhook_database_wal_bytes',
    help: 'Size of the write-ahead log (SQLite only).',
    read: () => latest()?.database.walBytes ?? undefined,
  });
  metrics.gauge({
    name: 'flowhook_database_wait_seconds',
    help: 'How long the oldest waiting database call of this process has waited.',
    read: () => store.waitMs() / 1_000,
  });
  metrics.gauge({
    name: 'flowhook_jobs',
    help: `Unfinished jobs of all teams in the database, up to ${MOST}.`,
    labels: ['state'],
    read: () => {
      const jobs = latest()?.work.jobs;
      if (jobs === undefined) return undefined;
      return [
        { labels: { state: 'queued' }, value: jobs.queued },
        { labels: { state: 'running' }, value: jobs.running },
        { labels: { state: 'retrying' }, value: jobs.retrying },
      ];
    },
  });
  metrics.gauge({
    name: 'flowhook_deliveries_waiting',
    help: `Waiting deliveries of all teams in the database, due now or later, up to ${MOST}.`,
    read: () => latest()?.work.deliveries.waiting,
  });
  metrics.gauge({
    name: 'flowhook_workflows_stale',
    help: `Workflows of all teams without a successful run for the \`fresh\` of their definition, up to ${MOST}. Paused ones are left out.`,
    read: () => latest()?.stale,
  });
  registerDecisions(metrics, latest, () => store.now());
  const endpoints = ['well', 'failing'] as const;
  metrics.gauge({
    name: 'flowhook_webhooks_due',
    help:
      'Active webhooks with due deliveries in the database, by the last attempt at their endpoint: `failing` ' +
      'if it failed, otherwise `well`.',
    labels: ['endpoint'],
    read: () => {
      const due = latest()?.due;
      return due && endpoints.map((endpoint) => ({ labels: { endpoint }, value: due[endpoint].webhooks }));
    },
  });
  metrics.gauge({
    name: 'flowhook_delivery_oldest_due_seconds',
    help:
      'How long the oldest due delivery in the database has been due; 0 if none is due. A high value for ' +
      '`well` endpoints means that the service is late, unless a webhook has a rate limit lower than its ' +
      'rate of events. `failing` endpoints are retried after up to 15 minutes.',
    labels: ['endpoint'],
    read: () => {
      const due = latest()?.due;
      if (due === undefined) return undefined;
      return endpoints.map((endpoint) => {
        const { oldestDueAt } = due[endpoint];
        const value = oldestDueAt === null ? 0 : Math.max(0, store.now() - oldestDueAt) / 1_000;
        return { labels: { endpoint }, value };
      });
    },
  });
}

function registerDecisions(metrics: Metrics, latest: () => Latest, now: () => number): void {
  metrics.gauge({
    name: 'flowhook_decision_oldest_pending_seconds',
    help:
      'Age of the oldest event that waits for a decision about a webhook with a filter or a format; 0 if there is none. ' +
      'Large versions take a while; a high value for minutes means that no node decides.',
    read: () => {
      const found = latest();
      if (found === undefined) return undefined;
      return found.decisionAt === null ? 0 : Math.max(0, now() - found.decisionAt) / 1_000;
    },
  });
}

type Latest = Awaited<ReturnType<typeof readAll>> | undefined;

/** Reads in two turns of the event loop, because a read of SQLite blocks the event loop until the read is done. */
async function readAll(store: Store) {
  const { status } = store;
  const database = await status.database();
  const work = await status.work({ most: MOST });
  await nextTurn();
  return {
    database,
    work,
    stale: await store.freshness.countStale({ most: MOST }),
    due: await status.due(),
    decisionAt: await oldestDecisionAt(store),
  };
}

function registerLanes(metrics: Metrics, lanes: DeliveryEngine): void {
  metrics.gauge({
    name: 'flowhook_lanes',
    help: 'Webhooks that this node sends to or has recently sent to, by the state of their circuit breaker: `closed`, `half_open`, `open` (temporarily paused).',
    labels: ['state'],
    read: () => {
      const { circuits } = lanes.load;
      return Object.entries(circuits).map(([state, value]) => ({ labels: { state }, value }));
    },
  });
  metrics.gauge({
    name: 'flowhook_deliveries_in_flight',
    help: 'Requests to endpoints in flight from this node.',
    read: () => lanes.load.inFlight,
  });
  metrics.gauge({
    name: 'flowhook_deliveries_unsettled',
    help: 'Completed delivery attempts of this node that are not yet stored.',
    read: () => lanes.load.unsettled,
  });
}

function registerDisks(metrics: Metrics, { dataDirectory, backups }: MeasuredNode): void {
  const disk = metrics.source({ ...DISK_READ, read: () => statfs(dataDirectory) });
  metrics.gauge({
    name: 'flowhook_disk_free_bytes',
    help: 'Free disk space for this process at the data directory.',
    read: () => ifKnown(disk(), ({ bavail, bsize }) => bavail * bsize),
  });
  metrics.gauge({
    name: 'flowhook_disk_bytes',
    help: 'Size of the disk that holds the data directory.',
    read: () => ifKnown(disk(), ({ blocks, bsize }) => blocks * bsize),
  });
  if (backups === undefined) return;
  const { directory, everyMs } = backups;
  const newest = metrics.source({ ...DISK_READ, read: async () => listBackups(directory)[0] });
  metrics.gauge({
    name: 'flowhook_backup_interval_seconds',
    help: 'Interval between backups; missing if `FLOWHOOK_BACKUP_EVERY` is off, and on PostgreSQL.',
    read: () => ifKnown(everyMs ?? undefined, (ms) => ms / 1_000),
  });
  metrics.gauge({
    name: 'flowhook_backup_newest_timestamp_seconds',
    help: 'When the newest backup was made, in seconds since 1970; missing if there is none.',
    read: () => ifKnown(newest(), ({ createdAt }) => createdAt / 1_000),
  });
  metrics.gauge({
    name: 'flowhook_backup_newest_bytes',
    help: 'Size of the newest backup.',
    read: () => newest()?.bytes,
  });
}

function ifKnown<T>(value: T | undefined, show: (value: T) => number): number | undefined {
  return value === undefined ? undefined : show(value);
}
