/** The Store on SQLite: writes go to the writer thread, reads run synchronously on a connection of this thread. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { inRounds } from '../rounds.ts';
import type { Store, Touched } from '../store.ts';
import type { DueLane } from '../webhook-operations.ts';
import { abandoned } from './attempts.ts';
import { list as listAudit } from './audit.ts';
import { changes } from './changes.ts';
import { compare, currentSeqs } from './compare.ts';
import { findDamage } from './damaged-log.ts';
import { Database } from './database.ts';
import * as deliveries from './deliveries.ts';
import { explainUnusable } from './disk-trouble.ts';
import * as erase from './erase.ts';
import { history as eventHistory, ofEvent } from './event-history.ts';
import * as events from './events.ts';
import { scanRecords, scanTexts } from './find-content.ts';
import { FORGET_START } from './forget-webhooks.ts';
import * as inspectors from './inspectors.ts';
import * as instance from './instance.ts';
import * as glance from './job-glance.ts';
import * as history from './job-history.ts';
import { log } from './job-log.ts';
import * as jobs from './jobs.ts';
import * as keys from './keys.ts';
import { dueLanes, firstDueAt, lane, laneNames, lanePages, load } from './lanes.ts';
import { migrate } from './migrate.ts';
import type { WriteInput, WriteName, WriteResult } from './operations.ts';
import { EXPIRE_START, PRUNE_START } from './outbox-retention.ts';
import { OwnFiles } from './own-files.ts';
import { type Ownership, takeOwnership } from './owner.ts';
import { prunable } from './prune.ts';
import * as quotas from './quotas.ts';
import { reading } from './reader.ts';
import * as records from './records.ts';
import { retired } from './remove-team.ts';
import { REPLAY_START } from './replay-steps.ts';
import { getReplay, replayable, replayed } from './replays.ts';
import * as schedules from './schedules.ts';
import { scrub } from './scrub.ts';
import * as sessions from './sessions.ts';
import { settlementRow } from './settle.ts';
import * as status from './status.ts';
import * as teams from './teams.ts';
import type { View } from './transaction.ts';
import { read as readUsage } from './usage.ts';
import * as versions from './versions.ts';
import * as webhooks from './webhooks.ts';
import * as workflows from './workflows.ts';
import { startWriter, type Writer } from './writer.ts';

export interface SqliteOptions {
  /** The database file; its directory is created if it is missing. */
  path: string;
  clock: Clock;
  publicUrl: () => string;
  /** For teams that have no quotas of their own. */
  quotas: Quotas;
  log: Logger;
  synchronous: 'FULL' | 'OFF';
  own: boolean;
}

/** Opens the file: takes ownership if asked to, migrates it, starts the writer thread. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path, clock, log, synchronous } = options;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let ownership: Ownership | undefined;
  let reader: Database | undefined;
  let writer: Writer | undefined;
  let files: OwnFiles | undefined;
  try {
    ownership = options.own ? takeOwnership(path) : undefined;
    if (options.own) tellDamage(path, log);
    migrate({ path, log, now: clock(), own: options.own });
    reader = new Database(path, { readOnly: true });
    const listeners = new Set<(touched: Touched) => void>();
    writer = await startWriter({
      path,
      synchronous,
      clock,
      publicUrl: options.publicUrl,
      quotas: options.quotas,
      log,
      onTouched: (touched) => notify(listeners, touched, log),
      obstacle: () => files?.problem,
    });
    files = ownership && new OwnFiles({ path, ownership, log });
    return compose({ path, reader, writer, clock, listeners, ownership: files });
  } catch (error) {
    reader?.close();
    await writer?.close();
    ownership?.release();
    throw explainUnusable(error, path);
  }
}

/** Before SQLite opens the log: afterwards the commits behind the damage are overwritten. */
function tellDamage(path: string, log: Logger): void {
  const damage = findDamage(path);
  if (damage === undefined) return;
  const lost =
    damage.commits === null
      ? 'its header cannot be read, so all that it held is lost'
      : `${damage.commits} commits behind the damage are lost`;
  log.error(
    { path: `${path}-wal`, commits: damage.commits },
    `log.damaged: ${lost}. Check the disk; \`flowhook backup list\` shows the backups`,
  );
}

function compose(parts: {
  path: string;
  reader: Database;
  writer: Writer;
  clock: Clock;
  listeners: Set<(touched: Touched) => void>;
  ownership: OwnFiles | undefined;
}): Store {
  const { path, reader, writer, clock, listeners, ownership } = parts;
  let closing: Promise<void> | undefined;
  /** One scrub at a time. */
  let scrubbing: Promise<unknown> = Promise.resolve();

  const write =
    <Name extends WriteName>(name: Name) =>
    (input: WriteInput<Name>) =>
      writer.call(name, input) as Promise<WriteResult<Name>>;

  const onReader = reading(reader, clock);
  const read = <Result, Input = void>(operation: (view: View, input: Input) => Result) =>
    untilClosed(onReader(operation));

  const names = read(laneNames);

  /** The writer refuses calls after `close` by itself. */
  function untilClosed<Input, Result>(operation: (input: Input) => Promise<Result>) {
    return async (input: Input): Promise<Result> => {
      if (closing !== undefined) throw new Problem('stopping');
      return operation(input);
    };
  }

  async function close(): Promise<void> {
    listeners.clear();
    await scrubbing;
    // The writer closes last, so that it can checkpoint the WAL into the file.
    reader.close();
    await writer.close();
    ownership?.release();
  }

  return {
    instance: {
      claim: write('instance.claim'),
      get: read(instance.get),
      lease: async () => true,
    },
    teams: {
      ensure: write('teams.ensure'),
      get: read(teams.get),
      bySlug: read(teams.bySlug),
      list: read(teams.list),
      ensureSigningKey: write('teams.ensureSigningKey'),
      signingKeys: read(teams.signingKeys),
      retire: write('teams.retire'),
      retired: read(retired),
      delete: write('teams.delete'),
      setQuotas: write('teams.setQuotas'),
      quotas: read(quotas.quotas),
      holdings: read(quotas.holdings),
    },
    keys: {
      create: write('keys.create'),
      byHash: read(keys.byHash),
      get: read(keys.get),
      list: read(keys.list),
      revoke: write('keys.revoke'),
      rotate: write('keys.rotate'),
      used: write('keys.used'),
    },
    sessions: {
      begin: write('sessions.begin'),
      makeLink: write('sessions.makeLink'),
      redeem: write('sessions.redeem'),
      byHash: read(sessions.byHash),
      renew: write('sessions.renew'),
      end: write('sessions.end'),
      prune: write('sessions.prune'),
    },
    workflows: {
      apply: write('workflows.apply'),
      get: read(workflows.get),
      list: read(workflows.list),
      applied: read(workflows.applied),
      archive: write('workflows.archive'),
      pause: write('workflows.pause'),
      resume: write('workflows.resume'),
    },
    jobs: {
      enqueue: write('jobs.enqueue'),
      begin: write('jobs.begin'),
      noteSent: write('jobs.noteSent'),
      claim: write('jobs.claim'),
      setProcess: write('jobs.setProcess'),
      beat: write('jobs.beat'),
      fail: write('jobs.fail'),
      release: write('jobs.release'),
      abandoned: read(abandoned),
      reclaim: write('jobs.reclaim'),
      cancel: write('jobs.cancel'),
      endCanceled: write('jobs.endCanceled'),
      runNow: write('jobs.runNow'),
      report: write('jobs.report'),
      log: read(log),
      get: read(jobs.get),
      list: read(history.list),
      recent: read(glance.recent),
      counts: read(glance.counts),
      prune: inRounds(history.PRUNE_START, write('jobs.prune')),
    },
    schedules: { due: read(schedules.due), ahead: read(schedules.ahead), fire: write('schedules.fire') },
    records: {
      sweep: write('records.sweep'),
      compare: read(compare),
      stage: async ({ held, writes }) => {
        const seqs: number[] = [];
        do {
          const part = await write('records.stage')({ held, writes: writes.slice(seqs.length) });
          seqs.push(...part.seqs);
        } while (seqs.length < writes.length);
        return { seqs };
      },
      currentSeqs: read(currentSeqs),
      remove: async ({ held, seqs }) => {
        let rest = seqs;
        do {
          const { dealtWith } = await write('records.remove')({ held, seqs: rest });
          rest = rest.slice(dealtWith);
        } while (rest.length > 0);
      },
      publish: write('records.publish'),
      version: read(versions.version),
      versionAt: read(versions.versionAt),
      versions: read(versions.versions),
      page: read(records.page),
      search: read(records.search),
      changes: read(changes),
      prunable: read(prunable),
      prune: write('records.prune'),
    },
    events: {
      list: read(events.list),
      get: read(events.get),
      history: read(eventHistory),
      latest: read(events.latest),
      newest: read(events.newest),
    },
    webhooks: {
      subscribe: write('webhooks.subscribe'),
      list: read(webhooks.list),
      get: read(webhooks.get),
      unsubscribe: write('webhooks.unsubscribe'),
      secret: read(webhooks.secret),
      headers: read(webhooks.headers),
      rotate: write('webhooks.rotate'),
      change: write('webhooks.change'),
      pause: write('webhooks.pause'),
      resume: write('webhooks.resume'),
      test: write('webhooks.test'),
      forget: inRounds(FORGET_START, write('webhooks.forget')),
    },
    deliveries: {
      async lanes() {
        const due: DueLane[] = [];
        for await (const page of lanePages(names)) due.push(...(await read(dueLanes)(page)));
        return due;
      },
      lane: read(lane),
      keepLanes: read(() => ({ lost: [], late: [] })),
      releaseLanes: async () => {},
      load: read(load),
      settle: ({ settlements }) => write('deliveries.settle')({ rows: settlements.map(settlementRow) }),
      get: read(deliveries.get),
      list: read(deliveries.list),
      firstDueAt: read(firstDueAt),
      ofEvent: read(ofEvent),
      replay: write('deliveries.replay'),
      startReplay: write('deliveries.startReplay'),
      getReplay: read(getReplay),
      replayable: read(replayable),
      replayed: read(replayed),
      stepReplays: inRounds(REPLAY_START, write('deliveries.stepReplays')),
      expire: inRounds(EXPIRE_START, write('deliveries.expire')),
      prune: inRounds(PRUNE_START, write('deliveries.prune')),
    },
    inspectors: {
      create: write('inspectors.create'),
      list: read(inspectors.list),
      find: read(inspectors.find),
      change: write('inspectors.change'),
      remove: write('inspectors.remove'),
      keep: write('inspectors.keep'),
      requests: read(inspectors.requests),
      signers: read(inspectors.signers),
      prune: write('inspectors.prune'),
    },
    erasure: {
      workflows: read(erase.workflows),
      scanRecords: read(scanRecords),
      scanTexts: read(scanTexts),
      rewrite: write('erasure.rewrite'),
      remove: write('erasure.remove'),
      suppress: write('erasure.suppress'),
      suppressed: read(erase.suppressed),
      scrub: untilClosed((input) => {
        const scrubbed = scrubbing.then(() => scrub({ path, ...input }));
        scrubbing = scrubbed.catch(() => undefined);
        return scrubbed;
      }),
    },
    audit: { add: write('audit.add'), list: read(listAudit), prune: write('audit.prune') },
    usage: { count: write('usage.count'), read: read(readUsage), prune: write('usage.prune') },
    status: {
      database: read((view) => status.database(view, path)),
      work: (input) =>
        status.workOf(lanePages(names), input, { jobs: read(status.jobs), waiting: read(status.waiting) }),
      due: () => status.dueOf(lanePages(names), read(status.due)),
      schema: read(status.schema),
    },
    now: clock,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    copyTo: (file, signal) => writer.copyTo(file, signal),
    waitMs: () => writer.waitMs,
    check: async () => {
      const { trouble } = writer;
      if (trouble !== undefined) throw trouble;
      await read((view) => view.db.get('select 1 from instance'))();
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

function notify(listeners: Set<(touched: Touched) => void>, touched: Touched, log: Logger): void {
  for (const listener of listeners) {
    try {
      listener(touched);
    } catch (error) {
      log.error({ err: error }, 'watcher.failed');
    }
  }
}
