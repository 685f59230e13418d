/** The Store on SQLite: writes go to the writer thread, reads run synchronously on a connection of this thread. */

import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Quotas } from '../../model/quota.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import { makeDirectory } from '../../std/make-directory.ts';
import { sizeOf } from '../backup-files.ts';
import { composed } from '../composed.ts';
import { callsOf } from '../operation.ts';
import { schema } from '../operations/instance.ts';
import { type DueLane, lanePages } from '../operations/lanes.ts';
import type { DatabaseStatus, Store } from '../store.ts';
import { notifyWatchers, type Touched, type View } from '../transaction.ts';
import { SQLITE_OPERATIONS, type WriteName } from './batch.ts';
import { findDamage } from './damaged-log.ts';
import { Database } from './database.ts';
import { explainUnusable } from './disk-trouble.ts';
import { runFileTask } from './file-tasks.ts';
import { migrate } from './migrate.ts';
import { type Ownership, OwnFiles, takeOwnership } from './owner.ts';
import { reading } from './reader.ts';
import { createWriter, type Writer } from './writer.ts';

export interface SqliteOptions {
  /** The database file; its directory is created if it is missing. */
  path: string;
  clock: Clock;
  publicUrl: () => string;
  /** The default quotas, for teams without quotas of their own. */
  quotas: Quotas;
  log: Logger;
  synchronous: 'FULL' | 'OFF';
  own: boolean;
}

/**
 * Opens the file: takes ownership if requested, and migrates the database. The owner also starts the writer thread;
 * other processes start it with their first write.
 */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path, clock, log, synchronous } = options;
  makeDirectory(dirname(path));
  let ownership: Ownership | undefined;
  let reader: Database | undefined;
  let writer: Writer | undefined;
  let files: OwnFiles | undefined;
  try {
    ownership = options.own ? takeOwnership(path) : undefined;
    if (options.own) reportDamage(path, log);
    migrate({ path, log, now: clock(), own: options.own });
    // A process without a writer thread must be able to remove the log when it is the last process to close the file.
    reader = new Database(path, { readOnly: options.own });
    reader.exec('pragma query_only = on');
    const watchers = new Set<(touched: Touched) => void>();
    writer = createWriter({
      path,
      synchronous,
      clock,
      publicUrl: options.publicUrl,
      quotas: options.quotas,
      log,
      onTouched: (touched) => notifyWatchers(watchers, touched, log),
      obstacle: () => files?.problem,
    });
    if (options.own) await writer.start();
    files = ownership && new OwnFiles({ path, ownership, log });
    return compose({ path, reader, writer, clock, watchers, ownership: files });
  } catch (error) {
    reader?.close();
    await writer?.close();
    ownership?.release();
    throw explainUnusable(error, path);
  }
}

/**
 * Logs damage of the write-ahead log. Must run before SQLite opens the log, because SQLite then overwrites the commits
 * after the damage.
 */
function reportDamage(path: string, log: Logger): void {
  const damage = findDamage(path);
  if (damage === undefined) return;
  const lost =
    damage.commits === null
      ? 'its header cannot be read, so all its content is lost'
      : `${damage.commits} commits after the damage are lost`;
  log.error(
    { path: `${path}-wal`, commits: damage.commits },
    `log.damaged: ${lost}. Check the disk; \`flowhook backup list\` lists the backups`,
  );
}

function compose(parts: {
  path: string;
  reader: Database;
  writer: Writer;
  clock: Clock;
  watchers: Set<(touched: Touched) => void>;
  ownership: OwnFiles | undefined;
}): Store {
  const { path, reader, writer, clock, watchers, ownership } = parts;
  let closing: Promise<void> | undefined;
  /** The most recent scrub, for running only one scrub at a time. */
  let scrubbing: Promise<unknown> = Promise.resolve();

  /** Refuses reads after `close`. Writes need no such check, because the writer refuses them itself. */
  function requireOpen(): void {
    if (closing !== undefined) throw new Problem('stopping');
  }

  const onReader = reading(reader, clock, requireOpen);

  async function close(): Promise<void> {
    watchers.clear();
    await scrubbing;
    // The writer closes last, so that it can checkpoint the WAL into the file.
    reader.close();
    await writer.close();
    ownership?.release();
  }

  const calls = callsOf(SQLITE_OPERATIONS, (name, { kind, run }) =>
    kind === 'read' ? onReader(run) : (input) => writer.call(name as WriteName, input),
  );
  const made = composed(calls);

  return {
    ...calls,
    ...made,
    instance: { ...calls.instance, lease: async () => true },
    jobs: { ...calls.jobs, ...made.jobs },
    deliveries: {
      ...made.deliveries,
      async lanes({ asked }) {
        const due: DueLane[] = [];
        for (const { teamId } of await calls.lanes.teams()) {
          const before = due.length;
          for await (const webhookIds of lanePages((after) => calls.lanes.names({ teamId, after }))) {
            due.push(...(await calls.lanes.due({ teamId, webhookIds })));
          }
          asked?.add(teamId);
          if (due.length > before) continue;
          const { isStale } = await calls.lanes.afterSearch({ teamId });
          if (isStale) await calls.lanes.raise({ teamId });
        }
        return due;
      },
      lane: calls.lanes.one,
      load: calls.deliveries.load,
      keepLanes: async () => ({ lost: [], late: [] }),
      releaseLanes: async () => {},
    },
    erasure: {
      ...calls.erasure,
      scrub: async (input) => {
        requireOpen();
        const scrubbed = scrubbing.then(() => runFileTask('scrub', { path, ...input }));
        scrubbing = scrubbed.catch(() => undefined);
        return scrubbed;
      },
    },
    status: { ...calls.status, database: onReader((view: View) => database(view, path)) },
    now: clock,
    watch(watcher) {
      watchers.add(watcher);
      // Only the thread notices commits of other processes. If it cannot start, the next write reports why.
      writer.start().catch(() => undefined);
      return () => void watchers.delete(watcher);
    },
    isTold: () => true,
    sharesCommit: () => writer.isWritingOthers,
    copyTo: (file, signal) => writer.copyTo(file, signal),
    waitMs: () => writer.waitMs,
    check: async () => {
      const { trouble } = writer;
      if (trouble !== undefined) throw trouble;
      await calls.instance.get({ name: '' });
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** The state of the database file. */
async function database(view: View, path: string): Promise<DatabaseStatus> {
  const found = await view.db.get<{ version: string }>('select sqlite_version() as version');
  return {
    kind: 'sqlite',
    version: found?.version ?? '',
    bytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    schema: (await schema(view)).found,
  };
}
