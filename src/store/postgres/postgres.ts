/** The Store on PostgreSQL: any number of processes work on one database, and any of them may die. */
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { inRounds } from '../rounds.ts';
import type { Store, Touched } from '../store.ts';
import * as attempts from './attempts.ts';
import * as audit from './audit.ts';
import * as beat from './beat.ts';
import * as cancel from './cancel.ts';
import { changes } from './changes.ts';
import { claim, claiming } from './claim.ts';
import { survey } from './claim-bounds.ts';
import { startClock } from './clock.ts';
import { compare, currentSeqs } from './compare.ts';
import { connectionWaitMs, Database, openPool } from './database.ts';
import * as erase from './erase.ts';
import { scanRecords, scanTexts } from './find-content.ts';
import * as inspectors from './inspectors.ts';
import * as instance from './instance.ts';
import * as glance from './job-glance.ts';
import * as history from './job-history.ts';
import { log as jobLog, report } from './job-log.ts';
import * as jobs from './jobs.ts';
import * as keys from './keys.ts';
import { migrate } from './migrate.ts';
import { Notifications } from './notifications.ts';
import { outbox } from './outbox.ts';
import { PRUNE_START as PRUNE_RECORDS_START, prunable, prune } from './prune.ts';
import { publish } from './publish.ts';
import { begin, noteSent } from './push.ts';
import * as quotas from './quotas.ts';
import * as records from './records.ts';
import * as removeTeam from './remove-team.ts';
import * as schedules from './schedules.ts';
import { scrub } from './scrub.ts';
import * as sessions from './sessions.ts';
import { stage } from './stage.ts';
import * as status from './status.ts';
import { remove, sweep } from './sweep.ts';
import { TeamTurns } from './team-turns.ts';
import * as teams from './teams.ts';
import type { Tx, View } from './transaction.ts';
import { unusable } from './unusable.ts';
import * as usage from './usage.ts';
import * as versions from './versions.ts';
import * as workflows from './workflows.ts';
import { asProblem, writing } from './write.ts';
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
  const listeners = new Set<(touched: Touched) => void>();
  const notifications = new Notifications({
    url,
    pool: leasePool,
    log,
    onForeign: (touched) => tell(listeners, touched, log),
  });
  const onTouched = ({ touched, keysChanged }: Pick<Tx, 'touched' | 'keysChanged'>) => {
    if (keysChanged !== undefined) notifications.noteOwnKeys(keysChanged);
    if (listen) notifications.notify(touched);
    tell(listeners, touched, log);
  };
  /** Calls that must end before the connections are closed. */
  const underWay = new Set<Promise<unknown>>();
  const follow = <Result>(work: Promise<Result>): Promise<Result> => {
    underWay.add(work);
    const over = () => void underWay.delete(work);
    work.then(over, over);
    return work;
  };
  /** The cursor of pruning records. */
  let prunedRecords = PRUNE_RECORDS_START;
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
  const batched = writingInBatches({ ...forWriting, pool, turns });
  const leasing = writing({ ...forWriting, pool: leasePool, turns: undefined });
  type Operation<Input, Result> = (tx: Tx, input: Input) => Promise<Result>;
  const write = <Input, Result>(operation: Operation<Input, Result>) => guarded(performing(operation));
  const lease = <Input, Result>(operation: Operation<Input, Result>) => guarded(leasing(operation));
  const read =
    <Input, Result>(operation: (view: View, input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      if (closing !== undefined) throw new Problem('stopping');
      try {
        return await follow(operation({ db: new Database(pool, { reads: true }), now: now() }, input));
      } catch (error) {
        throw asProblem(error);
      }
    };

  return {
    instance: { claim: write(instance.claim), get: read(instance.get), lease: lease(instance.lease) },
    teams: {
      ensure: write(teams.ensure),
      get: read(teams.get),
      bySlug: read(teams.bySlug),
      list: read(teams.list) as Store['teams']['list'],
      ensureSigningKey: write(teams.ensureSigningKey),
      signingKeys: read(teams.signingKeys),
      retire: write(removeTeam.retire),
      retired: read(removeTeam.retired) as Store['teams']['retired'],
      delete: write(removeTeam.remove),
      setQuotas: write(quotas.setQuotas),
      quotas: read(quotas.quotas),
      holdings: read(quotas.holdings),
    },
    keys: {
      create: write(keys.create),
      byHash: read(keys.byHash),
      get: read(keys.get),
      list: read(keys.list),
      revoke: write(keys.revoke),
      rotate: write(keys.rotate),
      used: write(keys.used),
    },
    sessions: {
      begin: write(sessions.begin),
      makeLink: write(sessions.makeLink),
      redeem: write(sessions.redeem),
      byHash: read(sessions.byHash),
      renew: write(sessions.renew),
      end: write(sessions.end),
      prune: write(sessions.prune),
    },
    workflows: {
      apply: write(workflows.apply),
      get: read(workflows.get),
      list: read(workflows.list),
      applied: read(workflows.applied) as Store['workflows']['applied'],
      archive: write(workflows.archive),
      pause: write(workflows.pause),
      resume: write(workflows.resume),
    },
    jobs: {
      enqueue: guarded(batched(jobs.enqueue)),
      begin: write(begin),
      noteSent: write(noteSent),
      claim: claiming({ claim: write(claim), survey: read(survey), now }),
      setProcess: write(attempts.setProcess),
      beat: beat.beating({ free: lease(beat.renewFree), locked: write(beat.renewLocked) }),
      fail: write(attempts.fail),
      release: async ({ held }) => {
        const release = write(attempts.release);
        await Promise.all(held.map((one) => release({ held: one })));
      },
      abandoned: read(attempts.abandoned),
      reclaim: write(attempts.reclaim),
      cancel: write(cancel.cancel),
      endCanceled: write(cancel.endCanceled),
      runNow: write(cancel.runNow),
      report: write(report),
      log: read(jobLog),
      get: read(jobs.get),
      list: read(history.list),
      recent: read(glance.recent),
      counts: read(glance.counts),
      prune: inRounds(history.PRUNE_START, write(history.prune)),
    },
    schedules: {
      due: read(schedules.due),
      ahead: read(schedules.ahead),
      fire: guarded(batched(schedules.fire)),
    },
    records: {
      sweep: write(sweep),
      compare: read(compare),
      stage: write(stage),
      currentSeqs: read(currentSeqs),
      remove: write(remove),
      publish: write(publish),
      version: read(versions.version),
      versionAt: read(versions.versionAt),
      versions: read(versions.versions),
      page: read(records.page),
      search: read(records.search),
      changes: read(changes),
      prunable: read(prunable),
      prune: async (input) => {
        const { done, next } = await write(prune)({ ...input, after: prunedRecords });
        prunedRecords = next;
        return { done };
      },
    },
    ...outbox({ read, write, lease, now }),
    inspectors: {
      create: write(inspectors.create),
      list: read(inspectors.list),
      find: read(inspectors.find),
      change: write(inspectors.change),
      remove: write(inspectors.remove),
      keep: write(inspectors.keep),
      requests: read(inspectors.requests),
      signers: read(inspectors.signers),
      prune: write(inspectors.prune),
    },
    erasure: {
      workflows: read(erase.workflows),
      scanRecords: read(scanRecords),
      scanTexts: read(scanTexts),
      rewrite: write(erase.rewrite),
      remove: write(erase.remove),
      suppress: write(erase.suppress),
      suppressed: read(erase.suppressed),
      scrub: read((_view, { rewriteBytes }: { rewriteBytes: number }) => scrub({ url, log, rewriteBytes })),
    },
    audit: { add: write(audit.add), list: read(audit.list), prune: write(audit.prune) },
    usage: { count: write(usage.count), read: read(usage.read), prune: write(usage.prune) },
    status: {
      database: read(status.database) as Store['status']['database'],
      work: read(status.work),
      due: read(status.due) as Store['status']['due'],
      schema: read(status.schema) as Store['status']['schema'],
    },
    now,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    waitMs: () => connectionWaitMs(pool),
    check: async () => {
      await read((view) => view.db.get('select 1 from instance'))(undefined);
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };

  async function close(): Promise<void> {
    listeners.clear();
    measured?.stop();
    // `pool.end()` would drop the calls that still wait for a connection.
    await Promise.allSettled(underWay);
    await notifications.stop();
    await Promise.all([pool.end(), leasePool.end()]);
  }
}

function tell(listeners: Set<(touched: Touched) => void>, touched: Touched, log: Logger): void {
  for (const listener of listeners) {
    try {
      listener(touched);
    } catch (error) {
      log.error({ err: error }, 'watcher.failed');
    }
  }
}
