/** The Store on PostgreSQL: any number of processes work on one database, and any of them may crash. */

import { performance } from 'node:perf_hooks';
import { LONGEST_WAIT_MS } from '../../model/delivery.ts';
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { composed } from '../composed.ts';
import { callsOf, lease, type Operation, read, write } from '../operation.ts';
import { hasSeveralTeams, LONGEST_WAIT_MS as LONGEST_JOB_WAIT_MS } from '../operations/attempts.ts';
import { OPERATIONS } from '../operations/table.ts';
import type { DatabaseStatus, Store } from '../store.ts';
import { type AgendaItem, notifyWatchers, type Touched, type Tx, type View } from '../transaction.ts';
import { beating, renewFree, renewLocked } from './beat.ts';
import { claiming, LOCK_MS, raiseJobs, search, take } from './claim.ts';
import { openPool } from './connections.ts';
import { connectionWaitMs, Database } from './database.ts';
import { unusable } from './failures.ts';
import { migrate } from './migrate.ts';
import { Notifications } from './notifications.ts';
import { eachPart, LANE_OPERATIONS, LOAD, outbox } from './outbox.ts';
import { isDistributed as findDistributed } from './placement.ts';
import { reading } from './reader.ts';
import { availableShards } from './shards.ts';
import { TeamAgenda } from './team-agenda.ts';
import { scrub } from './whole.ts';
import { TeamTurns, writing } from './write.ts';
import { writingInBatches } from './write-batches.ts';

/** The operations of this driver: those that both drivers share, and those that PostgreSQL implements itself. */
const POSTGRES_OPERATIONS = {
  ...OPERATIONS,
  claiming: {
    search: read(search, { prepares: true }),
    take: write(take, { prepares: true, lockMs: LOCK_MS }),
    raise: write(raiseJobs, { prepares: true, lockMs: LOCK_MS }),
    hasSeveralTeams: read(hasSeveralTeams, { prepares: true }),
  },
  beating: { free: lease(renewFree), locked: write(renewLocked) },
  deliveries: { ...OPERATIONS.deliveries, load: LOAD },
  lanes: LANE_OPERATIONS,
  status: { ...OPERATIONS.status, database: read(database) },
};

/** Searches of all teams that find those of the available servers if the database is distributed. */
const OF_ALL_TEAMS = new Set<unknown>(
  [OPERATIONS.agenda.due, OPERATIONS.jobs.abandoned, OPERATIONS.schedules.due].map(({ run }) => run),
);

/**
 * Number of connections reserved for renewing leases and polling for key changes, which must never wait for other work.
 */
const LEASE_POOL_SIZE = 2;

export interface PostgresOptions {
  url: string;
  /** Replaces the database's clock in tests. */
  clock: Clock | undefined;
  publicUrl: () => string;
  /** The default quotas, for teams without quotas of their own. */
  quotas: Quotas;
  log: Logger;
  /**
   * Maximum number of connections for all other work. In addition, two connections renew leases and one connection
   * listens.
   */
  poolSize: number;
  /** Whether this process is a node, which follows changes by other processes. False for a command. */
  own: boolean;
  /** Whether to announce jobs and deliveries by LISTEN and NOTIFY. */
  listen: boolean;
}

/** Opens the database: migrates it, measures its clock, and follows changes by other processes. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, clock, publicUrl, log, poolSize, own, listen } = options;
  const pool = openPool({ url, size: poolSize, log, serves: true });
  const leasePool = openPool({ url, size: LEASE_POOL_SIZE, log, serves: true });
  const watchers = new Set<(touched: Touched) => void>();
  const notifications = new Notifications({
    url,
    pool: leasePool,
    log,
    onForeign: (touched) => notifyWatchers(watchers, touched, log),
  });
  const onTouched = ({ touched, keysChanged }: Pick<Tx, 'touched' | 'keysChanged'>) => {
    if (keysChanged !== undefined) notifications.noteOwnKeys(keysChanged);
    if (listen) notifications.notify(touched);
    notifyWatchers(watchers, touched, log);
  };
  /** Calls in progress. Connections are closed only after these calls have ended. */
  const underWay = new Set<Promise<unknown>>();
  const follow = <Result>(work: Promise<Result>): Promise<Result> => {
    underWay.add(work);
    const over = () => void underWay.delete(work);
    work.then(over, over);
    return work;
  };
  let closing: Promise<void> | undefined;
  let measured: Awaited<ReturnType<typeof startClock>> | undefined;
  let isDistributed: boolean;
  try {
    await migrate({ url, pool, log });
    isDistributed = await findDistributed(new Database(pool));
    if (clock === undefined) measured = await startClock(new Database(pool));
    if (own) await notifications.watchKeys();
    if (own && listen) await notifications.listen();
  } catch (error) {
    measured?.stop();
    await notifications.stop();
    await Promise.all([pool.end(), leasePool.end()]);
    throw unusable(error);
  }
  const now = clock ?? (measured?.now as Clock);

  const forWriting = { now, publicUrl, quotas: options.quotas, onTouched };
  const turns = new TeamTurns(poolSize);
  /** Refuses calls while the store is closing or closed. Closing waits for calls that are already running. */
  const guarded =
    <Input, Result>(run: (input: Input) => Promise<Result>) =>
    (input: Input): Promise<Result> =>
      closing === undefined ? follow(run(input)) : Promise.reject(new Problem('stopping'));
  const performing = writing({ ...forWriting, pool, turns });
  const inBatches = writingInBatches({ ...forWriting, pool, turns });
  const leasing = writing({ ...forWriting, pool: leasePool, turns: undefined });
  const read = reading(pool, now);
  const how = {
    read: (operation: Operation<View, unknown, unknown>) => {
      const whole = read(operation.run, operation.prepares);
      if (!isDistributed || !OF_ALL_TEAMS.has(operation.run)) return whole;
      const available = read(
        (view: View, input: unknown) => operation.run(availableShards(view), input),
        operation.prepares,
      );
      return (input: unknown) =>
        whole(input).catch((error: unknown) => {
          if (error instanceof Problem && error.code === 'database_unavailable') return available(input);
          throw error;
        });
    },
    write: performing,
    batched: inBatches,
    lease: leasing,
  };
  const calls = callsOf(POSTGRES_OPERATIONS, (_, operation) =>
    guarded((how[operation.kind] as typeof how.read)(operation)),
  );

  const settle: typeof calls.deliveries.settle = async ({ rows }) => {
    const parts = await eachPart(
      isDistributed,
      rows,
      ([teamId]) => teamId,
      (part) => calls.deliveries.settle({ rows: part, ofOne: isDistributed }),
    ).catch((error) => {
      // The caller then retries each webhook by itself, so that one server that is not available delays no others.
      throw isDistributed && error instanceof Problem
        ? new Problem('database_busy', { cause: error })
        : error;
    });
    return { more: parts.some(({ more }) => more) };
  };
  const made = composed({ ...calls, deliveries: { ...calls.deliveries, settle } });
  const agendaOf = (item: AgendaItem, longestWaitMs: number) =>
    new TeamAgenda({
      item,
      longestWaitMs,
      read: calls.agenda.due,
      now,
      isTold: () => notifications.isHeard,
    });
  const jobAgenda = agendaOf('jobs', LONGEST_JOB_WAIT_MS);
  const laneAgenda = agendaOf('lanes', LONGEST_WAIT_MS);
  // The first watcher, so that the others find what it has noted.
  watchers.add(({ jobs, teams, deliveries, lanes }) => {
    if (jobs) jobAgenda.note(teams);
    if (deliveries) laneAgenda.note(lanes === null ? null : lanes.map(({ teamId }) => teamId));
  });
  return {
    ...calls,
    ...made,
    jobs: {
      ...made.jobs,
      ...claiming({ ...calls.claiming, agenda: jobAgenda, now }),
      beat: beating(calls.beating),
    },
    deliveries: { ...made.deliveries, ...outbox({ ...calls, agenda: laneAgenda, now, isDistributed }) },
    erasure: {
      ...calls.erasure,
      scrub: guarded(({ rewriteBytes }: { rewriteBytes: number }) => scrub({ url, log, rewriteBytes })),
    },
    now,
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    isTold: () => notifications.isHeard,
    sharesCommit: () => false,
    copyTo: async () => {
      throw new Error('Flowhook cannot back up PostgreSQL. Use pg_dump or pg_basebackup');
    },
    waitMs: () => connectionWaitMs(pool),
    check: async () => {
      await calls.instance.get({ name: '' });
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };

  async function close(): Promise<void> {
    watchers.clear();
    measured?.stop();
    // Running calls end before the pool does, because `pool.end()` would drop calls that are waiting for a connection.
    await Promise.allSettled(underWay);
    await notifications.stop();
    await Promise.all([pool.end(), leasePool.end()]);
  }
}

/**
 * Interval between measurements. Quartz clocks drift by less than 0.1 ms per second, so by less than 1 ms in between.
 */
const MEASURE_EVERY_MS = 10_000;

interface DatabaseClock {
  now: Clock;
  stop(): void;
}

/**
 * The time of the database's clock. All nodes use the database's clock, even if their own clocks differ. Between two
 * measurements, this process adds the time that its monotonic clock measures.
 *
 * Measures immediately, and then every 10 s. The error is at most half of the shortest round trip, plus the drift since
 * the last measurement.
 */
async function startClock(db: Database): Promise<DatabaseClock> {
  let offset = await measure(db);
  const timer = setInterval(() => {
    measure(db).then(
      (measured) => {
        offset = measured;
      },
      // A failure is ignored, because the time of the database is not needed while the database cannot be reached.
      () => undefined,
    );
  }, MEASURE_EVERY_MS).unref();
  return { now: () => Math.floor(performance.now() + offset), stop: () => clearInterval(timer) };
}

/** Measures the offset from the monotonic clock to the database's clock. Uses the fastest of three round trips. */
async function measure(db: Database): Promise<number> {
  let best = { tookMs: Number.POSITIVE_INFINITY, offset: 0 };
  for (let tries = 0; tries < 3; tries += 1) {
    const startMs = performance.now();
    const { at } = (await db.get<{ at: number }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::float8 as at',
    )) as { at: number };
    const tookMs = performance.now() - startMs;
    if (tookMs < best.tookMs) best = { tookMs, offset: at - startMs - tookMs / 2 };
  }
  return best.offset;
}

async function database(view: View): Promise<DatabaseStatus> {
  const row = await view.db.get<Pick<DatabaseStatus, 'version' | 'bytes' | 'schema'>>(
    `select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
            (select max(number) from schema_version) as schema`,
  );
  return { version: '', bytes: 0, schema: 0, ...row, kind: 'postgres', walBytes: null };
}
