/** The Store on SQLite: writes go to the writer thread, reads run at once on a connection of this thread. */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Problem } from '../../model/error.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../std/clock.ts';
import type { Store, Touched } from '../store.ts';
import { abandoned } from './attempts.ts';
import { Database, isOutside } from './database.ts';
import * as deliveries from './deliveries.ts';
import * as events from './events.ts';
import * as jobs from './jobs.ts';
import * as keys from './keys.ts';
import { migrate } from './migrate.ts';
import type { WriteInput, WriteName, WriteResult } from './operations.ts';
import { type Ownership, takeOwnership } from './owner.ts';
import * as records from './records.ts';
import { currentSeqs } from './stage.ts';
import * as teams from './teams.ts';
import type { View } from './transaction.ts';
import * as webhooks from './webhooks.ts';
import * as workflows from './workflows.ts';
import { startWriter } from './writer.ts';

export interface SqliteOptions {
  /** The database file; its directory is made if it is missing. */
  path: string;
  clock: Clock;
  publicUrl: () => string;
  log: Logger;
  synchronous: 'FULL' | 'OFF';
  own: boolean;
}

/** Opens the file: owns it if asked to, migrates it, starts the writer thread. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path, clock, log, synchronous } = options;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const ownership = options.own ? takeOwnership(path) : undefined;
  let reader: Database | undefined;
  try {
    migrate({ path, log, now: clock(), own: options.own });
    reader = new Database(path, { readOnly: true });
    const listeners = new Set<(touched: Touched) => void>();
    const writer = await startWriter({
      path,
      synchronous,
      clock,
      publicUrl: options.publicUrl,
      log,
      onTouched: (touched) => tell(listeners, touched, log),
    });
    return compose({ reader, writer, clock, listeners, ownership });
  } catch (error) {
    reader?.close();
    ownership?.release();
    throw error;
  }
}

function compose(parts: {
  reader: Database;
  writer: Awaited<ReturnType<typeof startWriter>>;
  clock: Clock;
  listeners: Set<(touched: Touched) => void>;
  ownership: Ownership | undefined;
}): Store {
  const { reader, writer, clock, listeners, ownership } = parts;
  let closing: Promise<void> | undefined;

  const write =
    <Name extends WriteName>(name: Name) =>
    (input: WriteInput<Name>) =>
      writer.call(name, input) as Promise<WriteResult<Name>>;

  const read =
    <Input, Result>(operation: (view: View, input: Input) => Result) =>
    async (input: Input): Promise<Result> => {
      if (closing !== undefined) throw new Problem('stopping');
      try {
        return operation({ db: reader, now: clock() }, input);
      } catch (error) {
        throw isOutside(error) ? new Problem('database_unavailable', { cause: error }) : error;
      }
    };

  async function close(): Promise<void> {
    listeners.clear();
    // The writer is the last to close, so that it folds the WAL back into the file.
    reader.close();
    await writer.close();
    ownership?.release();
  }

  return {
    instance: { claim: write('instance.claim') },
    teams: {
      ensure: write('teams.ensure'),
      get: read(teams.get),
      bySlug: read(teams.bySlug),
      list: read(teams.list) as Store['teams']['list'],
      ensureSigningKey: write('teams.ensureSigningKey'),
      signingKeys: read(teams.signingKeys),
    },
    keys: {
      create: write('keys.create'),
      byHash: read(keys.byHash),
      list: read(keys.list),
      revoke: write('keys.revoke'),
    },
    workflows: {
      apply: write('workflows.apply'),
      get: read(workflows.get),
      list: read(workflows.list),
      archive: write('workflows.archive'),
    },
    jobs: {
      enqueue: write('jobs.enqueue'),
      claim: write('jobs.claim'),
      setProcess: write('jobs.setProcess'),
      beat: write('jobs.beat'),
      fail: write('jobs.fail'),
      release: write('jobs.release'),
      abandoned: read(abandoned),
      reclaim: write('jobs.reclaim'),
      get: read(jobs.get),
      nextRunAt: read(jobs.nextRunAt) as Store['jobs']['nextRunAt'],
    },
    records: {
      sweep: write('records.sweep'),
      stage: write('records.stage'),
      currentSeqs: read(currentSeqs),
      remove: write('records.remove'),
      publish: write('records.publish'),
      version: read(records.version),
      page: read(records.page),
    },
    events: { list: read(events.list) },
    webhooks: {
      subscribe: write('webhooks.subscribe'),
      list: read(webhooks.list),
      get: read(webhooks.get),
      byUrl: read(webhooks.byUrl),
      unsubscribe: write('webhooks.unsubscribe'),
      secret: read(webhooks.secret),
    },
    deliveries: {
      lanes: read(deliveries.lanes) as Store['deliveries']['lanes'],
      load: read(deliveries.load),
      settle: write('deliveries.settle'),
      get: read(deliveries.get),
      list: read(deliveries.list),
    },
    now: clock,
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    check: async () => {
      if (!writer.alive) throw new Problem('database_unavailable');
      await read((view) => view.db.get('select 1 from instance'))(undefined);
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
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
