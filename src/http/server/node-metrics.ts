/**
 * Metrics that are read when somebody scrapes, from the parts of this node and from the database. Requests, jobs and
 * deliveries are counted as they happen: see `observe/work-metrics.ts`.
 */
import { statfs } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Metrics } from '../../observe/metrics.ts';
import type { BodyCache } from '../../records/body-cache.ts';
import { listBackups } from '../../store/backup-files.ts';
import type { Store } from '../../store/store.ts';
import type { DeliveryEngine } from '../../webhooks/delivery-engine.ts';
import type { InFlight, Overload } from '../limits/requests.ts';

/** Jobs and deliveries are not counted beyond this. */
const MOST = 10_000;
/** How long a reading of the database is kept, and how long a scrape waits for one. */
const DATABASE_READ = { keepMs: 3_000, withinMs: 2_000 };
/** The same for disks and directories. */
const DISK_READ = { keepMs: 30_000, withinMs: 1_000 };

export interface MeasuredNode {
  version: string;
  role: string;
  databaseKind: 'sqlite' | 'postgres';
  store: Store;
  lanes: DeliveryEngine;
  bodies: BodyCache;
  overload: Overload;
  inFlight: InFlight;
  isReady(): boolean;
  dataDirectory: string;
  /** Where backups are and how often they are made; undefined for PostgreSQL, which has its own tools. */
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

/** Registers what only the HTTP application knows. */
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
    help: 'Always 1; the labels say what runs.',
    labels: Object.keys(labels),
    read: () => [{ labels, value: 1 }],
  });
  metrics.gauge({
    name: 'flowhook_ready',
    help: 'Whether this node has started and is not stopping: 1 or 0.',
    read: () => Number(isReady()),
  });
}

function registerRequests(metrics: Metrics, { overload, inFlight, bodies }: MeasuredNode): void {
  metrics.gauge({
    name: 'http_server_active_requests',
    help: 'Requests whose answer is not complete, streams and waits included.',
    read: () => inFlight.size,
  });
  metrics.gauge({
    name: 'flowhook_http_concurrency_limit',
    help: 'Requests that are worked on at once at most; lowered while work waits too long.',
    read: () => overload.state.limit,
  });
  metrics.gauge({
    name: 'flowhook_http_shed_total',
    help: 'Requests that were refused because of overload; they are in no other number.',
    grows: true,
    read: () => overload.state.shed,
  });
  metrics.gauge({
    name: 'flowhook_representation_cache_bytes',
    help: 'What kept answers take on disk, those included that are being made.',
    read: () => bodies.size.bytes,
  });
  metrics.gauge({
    name: 'flowhook_representation_cache_files',
    help: 'Answers that are kept.',
    read: () => bodies.size.files,
  });
}

function registerDatabase(metrics: Metrics, store: Store): void {
  const latest = metrics.source({ ...DATABASE_READ, read: () => readAll(store) });
  metrics.gauge({
    name: 'flowhook_database_up',
    help: 'Whether the database answered within 2 s: 1 or 0. While it does not, what stands in it is missing here.',
    read: () => Number(latest() !== undefined),
  });
  metrics.gauge({
    name: 'flowhook_database_bytes',
    help: 'The size of the database, without its write-ahead log.',
    read: () => latest()?.database.bytes,
  });
  metrics.gauge({
    name: 'flowhook_database_wal_bytes',
    help: 'The size of the write-ahead log; of SQLite alone.',
    read: () => latest()?.database.walBytes ?? undefined,
  });
  metrics.gauge({
    name: 'flowhook_database_wait_seconds',
    help: 'How long the call of this process has waited for its turn that waits longest now.',
    read: () => store.waitMs() / 1_000,
  });
  metrics.gauge({
    name: 'flowhook_jobs',
    help: `In the database: jobs of all teams that have not ended, up to ${MOST}.`,
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
    help: `In the database: deliveries of all teams that wait, now due or later, up to ${MOST}.`,
    read: () => latest()?.work.deliveries.waiting,
  });
  const endpoints = ['well', 'failing'] as const;
  metrics.gauge({
    name: 'flowhook_webhooks_due',
    help: 'In the database: active webhooks that something is due for, by whether their endpoint failed last (`failing`) or not (`well`).',
    labels: ['endpoint'],
    read: () => {
      const due = latest()?.due;
      return due && endpoints.map((endpoint) => ({ labels: { endpoint }, value: due[endpoint].webhooks }));
    },
  });
  metrics.gauge({
    name: 'flowhook_delivery_oldest_due_seconds',
    help: 'In the database: how long the oldest due delivery has been due; 0 when none is. For endpoints that are `well` the service itself is late, unless a webhook has a rate limit below its events; endpoints that are `failing` are retried only after up to 15 minutes.',
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

/** One after the other: a read of SQLite blocks the event loop until it is done. */
async function readAll({ status }: Store) {
  const database = await status.database();
  const work = await status.work({ most: MOST });
  await nextTurn();
  return { database, work, due: await status.due() };
}

function registerLanes(metrics: Metrics, lanes: DeliveryEngine): void {
  metrics.gauge({
    name: 'flowhook_lanes',
    help: 'Webhooks that this node sends to or has sent to recently, by the state of their circuit breaker: `closed`, `half_open`, `open` (paused for now).',
    labels: ['state'],
    read: () => {
      const { circuits } = lanes.load;
      return Object.entries(circuits).map(([state, value]) => ({ labels: { state }, value }));
    },
  });
  metrics.gauge({
    name: 'flowhook_deliveries_in_flight',
    help: 'Requests to endpoints that are under way from this node.',
    read: () => lanes.load.inFlight,
  });
  metrics.gauge({
    name: 'flowhook_deliveries_unsettled',
    help: 'Attempts of this node that are over and not yet written down.',
    read: () => lanes.load.unsettled,
  });
}

function registerDisks(metrics: Metrics, { dataDirectory, backups }: MeasuredNode): void {
  const disk = metrics.source({ ...DISK_READ, read: () => statfs(dataDirectory) });
  metrics.gauge({
    name: 'flowhook_disk_free_bytes',
    help: 'What is free for this process where the data directory is.',
    read: () => ifKnown(disk(), ({ bavail, bsize }) => bavail * bsize),
  });
  metrics.gauge({
    name: 'flowhook_disk_bytes',
    help: 'How large the disk is where the data directory is.',
    read: () => ifKnown(disk(), ({ blocks, bsize }) => blocks * bsize),
  });
  if (backups === undefined) return;
  const { directory, everyMs } = backups;
  const newest = metrics.source({ ...DISK_READ, read: async () => listBackups(directory)[0] });
  metrics.gauge({
    name: 'flowhook_backup_interval_seconds',
    help: 'How often a backup is to be made; missing where `FLOWHOOK_BACKUP_EVERY` is off, and on PostgreSQL.',
    read: () => ifKnown(everyMs ?? undefined, (ms) => ms / 1_000),
  });
  metrics.gauge({
    name: 'flowhook_backup_newest_timestamp_seconds',
    help: 'When the newest backup was made, in seconds since 1970; missing where there is none.',
    read: () => ifKnown(newest(), ({ createdAt }) => createdAt / 1_000),
  });
  metrics.gauge({
    name: 'flowhook_backup_newest_bytes',
    help: 'The size of the newest backup.',
    read: () => newest()?.bytes,
  });
}

function ifKnown<T>(value: T | undefined, show: (value: T) => number): number | undefined {
  return value === undefined ? undefined : show(value);
}
