/** The writer thread: owns the only connection that writes, runs one batch at a time, answers after its commit. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Quotas } from '../../model/quota.ts';
import { type Batch, type BatchResult, runBatch } from './batch.ts';
import { Database } from './database.ts';
import { canWrite } from './disk-trouble.ts';

/** How often another process's commits are looked for. */
const FOREIGN_POLL_MS = 250;
/** How often it is tried whether a disk that took nothing takes something again. */
const PROBE_MS = 1_000;
const CANCEL_REMOVED: Batch = {
  now: 0,
  publicUrl: '',
  calls: [{ name: 'deliveries.cancelRemoved', input: undefined }],
};

/** What the thread is started with. */
export interface WriterData {
  path: string;
  synchronous: 'FULL' | 'OFF';
  quotas: Quotas;
}

/** What the thread is told. Batches are answered in the order in which they came. */
export type ToWriter = { batch: Batch } | { close: true };

/** What the thread says. */
export type FromWriter =
  | { ready: true }
  | { result: BatchResult }
  | { foreign: true }
  /** After a result with `trouble`: what has failed works again. */
  | { recovered: true }
  | { closed: true };

if (parentPort !== null) serve(parentPort, workerData as WriterData);

function serve(port: MessagePort, { path, synchronous, quotas }: WriterData): void {
  const db = new Database(path, { synchronous });
  // The number changes only when another connection commits: this one is the only one here that does.
  let seen = dataVersion(db);
  const poll = setInterval(() => {
    const found = dataVersion(db) ?? seen;
    if (found === seen) return;
    seen = found;
    say({ foreign: true });
    cancelMore();
  }, FOREIGN_POLL_MS);
  let canceling: NodeJS.Immediate | undefined;
  let probing: NodeJS.Timeout | undefined;

  port.on('message', (message: ToWriter) => {
    if ('batch' in message) {
      const result = runBatch(db, message.batch, quotas);
      say({ result });
      if (result.trouble !== undefined) probe();
      if (result.cancelMore) cancelMore();
      return;
    }
    clearInterval(poll);
    clearImmediate(canceling);
    clearTimeout(probing);
    foldLog(db);
    db.close();
    say({ closed: true });
    port.close();
  });
  say({ ready: true });
  // What an earlier life left: it may have ended between removing a webhook and canceling all that waited.
  cancelMore();

  /** Cancels what waits for removed webhooks, a part at a time, with batches in between. */
  function cancelMore(): void {
    canceling ??= setImmediate(() => {
      canceling = undefined;
      if (runBatch(db, CANCEL_REMOVED).cancelMore) cancelMore();
    });
  }

  /** Nobody may be there to write who would find it out: a node that is not ready is not asked. */
  function probe(): void {
    probing ??= setTimeout(() => {
      probing = undefined;
      if (canWrite(db)) say({ recovered: true });
      else probe();
    }, PROBE_MS);
  }

  function say(message: FromWriter): void {
    port.postMessage(message);
  }
}

/** Leaves an empty log, also where another process has the file open and closing it would not. */
function foldLog(db: Database): void {
  try {
    db.exec('pragma busy_timeout = 200; pragma wal_checkpoint(truncate)');
  } catch {
    // Somebody reads, or the disk is full: the log is as good as the file.
  }
}

/** Nothing while the file cannot be read: the next write will say so to somebody who can act on it. */
function dataVersion(db: Database): number | undefined {
  try {
    return db.get<{ data_version: number }>('pragma data_version')?.data_version;
  } catch {
    return undefined;
  }
}
