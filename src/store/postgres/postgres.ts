/** The Store on PostgreSQL: any number of processes work on one database, and any of them may die. */
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { composed } from '../composed.ts';
import { callsOf, type Operation } from '../operation.ts';
import type { Tx, View } from '../sql.ts';
import type { Store, Touched } from '../store.ts';
import { tell } from '../touched.ts';
import { beating } from './beat.ts';
import { claiming } from './claim.ts';
import { startClock } from './clock.ts';
import { connectionWaitMs, Database, openPool } from './database.ts';
import { migrate } from './migrate.ts';
import { Notifications } from './notifications.ts';
import { POSTGRES_OPERATIONS } from './operations.ts';
import { outbox } from './outbox.ts';
import { reading } from './reader.ts';
import { scrub } from './scrub.ts';
import { TeamTurns } from './team-turns.ts';
import { unusable } from './unusable.ts';
import { writing } from './write.ts';
import { writingInBatches } from './write-batches.ts';

/** Renewing leases and polling for key changes have connections of their own, so that they never wait for others. */
const LEASE_POOL_SIZE = 2;

export interface PostgresOptions {
  url: string;
  /** Replaces the database's clock, in tests. */
  clock: Clock | undefined;
  publicUrl: () => string;
  /** For teams without quotas of their own. */
  quotas: Quotas;
  log: Logger;
  /** The maximum number of connections, besides two for leases and one that listens. */
  poolSize: number;
  /** Whether this is a node, which follows the changes of other processes, and not a single command. */
  own: boolean;
  /** Whether to announce jobs and deliveries by LISTEN and NOTIFY. */
  listen: boolean;
}

/** Opens the database: migrates it, measures its clock, and follows the changes of other processes. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, clock, publicUrl, log, poolSize, own, listen } = options;
  const pool = openPool({ url, size: poolSize, log });
  const leasePool = openPool({ url, size: LEASE_POOL_SIZE, log });
  const watchers = new Set<(touched: Touched) => void>();
  const notifications = new Notifications({
    url,
    pool: leasePool,
    log,
    onForeign: (touched) => tell(watchers, touched, log),
  });
  const onTouched = ({ touched, keysChanged }: Pick<Tx, 'touched' | 'keysChanged'>) => {
    if (keysChanged !== undefined) notifications.noteOwnKeys(keysChanged);
    if (listen) notifications.notify(touched);
    tell(watchers, touched, log);
  };
  /** Calls that must end before the connections are closed. */
  const underWay = new Set<Promise<unknown>>();
  const follow = <Result>(work: Promise<Result>): Promise<Result> => {
    underWay.add(work);
    const over = () => void underWay.delete(work);
    work.then(over, over);
    return work;
  };
  let closing: Promise<void> | undefined;
  let measured: Awaited<ReturnType<typeof startClock>> | undefined;
  try {
    await migrate({ url, pool, log });
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
  /** Refuses calls once the store is closing, and lets closing wait for those under way. */
  const guarded =
    <Input, Result>(run: (input: Input) => Promise<Result>) =>
    (input: Input): Promise<Result> =>
      closing === undefined ? follow(run(input)) : Promise.reject(new Problem('stopping'));
  const performing = writing({ ...forWriting, pool, turns });
  const inBatches = writingInBatches({ ...forWriting, pool, turns });
  const leasing = writing({ ...forWriting, pool: leasePool, turns: undefined });
  const read = reading(pool, now);
  const how = {
    read: ({ run, prepares }: Operation<View, unknown, unknown>) => read(run, prepares),
    write: performing,
    batched: inBatches,
    lease: leasing,
  };
  const calls = callsOf(POSTGRES_OPERATIONS, (_, operation) =>
    guarded((how[operation.kind] as typeof how.read)(operation)),
  );

  const made = composed(calls);
  return {
    ...calls,
    jobs: {
      ...calls.jobs,
      ...made.jobs,
      claim: claiming({ ...calls.claiming, now }),
      beat: beating(calls.beating),
    },
    records: { ...calls.records, ...made.records },
    webhooks: { ...calls.webhooks, ...made.webhooks },
    deliveries: { ...calls.deliveries, ...made.deliveries, ...outbox({ ...calls, now }) },
    erasure: {
      ...calls.erasure,
      scrub: guarded(({ rewriteBytes }: { rewriteBytes: number }) => scrub({ url, log, rewriteBytes })),
    },
    now,
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    copyTo: async () => {
      throw new Error('PostgreSQL is backed up with its own tools');
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
    // `pool.end()` would drop the calls that still wait for a connection.
    await Promise.allSettled(underWay);
    await notifications.stop();
    await Promise.all([pool.end(), leasePool.end()]);
  }
}
