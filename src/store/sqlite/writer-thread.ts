/**
 * The writer thread. It owns the only connection that writes, runs one batch at a time, and replies after the commit.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Quotas } from '../../model/quota.ts';
import { type Batch, type BatchResult, type PackedError, packError, runBatch } from './batch.ts';
import { Database } from './database.ts';
import { canWrite } from './disk-trouble.ts';
import { copyInSteps, type StepCopy } from './step-copy.ts';

/** Interval at which the thread checks whether other processes have committed. */
const FOREIGN_POLL_MS = 250;
/** Interval at which the thread checks whether a failed disk can be written again. */
const PROBE_MS = 1_000;
export interface WriterData {
  path: string;
  synchronous: 'FULL' | 'OFF';
  quotas: Quotas;
}

/**
 * Messages to the thread. It replies to batches in the order in which they were sent. `copyTo` starts copying the
 * database in steps; a null `copyTo` stops the copy.
 */
export type ToWriter = { batch: Batch } | { copyTo: string | null } | { close: true };

/** Messages from the thread. */
export type FromWriter =
  | { ready: true }
  | { result: BatchResult }
  /** Another process has committed something. */
  | { foreign: true }
  /** The disk can be written again, after a result with `trouble`. */
  | { recovered: true }
  | { copied: { failed: PackedError | null } }
  | { closed: true };

if (parentPort !== null) serve(parentPort, workerData as WriterData);

function serve(port: MessagePort, { path, synchronous, quotas }: WriterData): void {
  const db = new Database(path, { synchronous });
  // `data_version` changes only when another connection commits. No other connection of this process commits, so a
  // change comes from another process.
  let seen = dataVersion(db);
  const poll = setInterval(() => {
    const found = dataVersion(db) ?? seen;
    if (found === seen) return;
    seen = found;
    say({ foreign: true });
  }, FOREIGN_POLL_MS);
  let probing: NodeJS.Timeout | undefined;

  let copy: StepCopy | undefined;
  /**
   * The last message. Messages are handled one at a time, because operations are asynchronous, and because no
   * transaction may be open at the first step of a copy.
   */
  let last: Promise<unknown> = Promise.resolve();

  port.on('message', (message: ToWriter) => {
    last = last.then(() => {
      if ('batch' in message) return run(message.batch);
      return 'copyTo' in message ? copyTo(message.copyTo) : close();
    });
  });
  say({ ready: true });

  async function run(batch: Batch): Promise<void> {
    const result = await runBatch(db, batch, quotas);
    say({ result });
    if (result.trouble !== undefined) probe();
  }

  async function copyTo(file: string | null): Promise<void> {
    if (file === null) return copy?.stop();
    copy = copyInSteps(db, file);
    copy.done.then(
      () => say({ copied: { failed: null } }),
      (error: unknown) => say({ copied: { failed: packError(error) } }),
    );
    await copy.begun;
  }

  async function close(): Promise<void> {
    copy?.stop();
    await copy?.done.catch(() => undefined);
    clearInterval(poll);
    clearTimeout(probing);
    emptyLog(db);
    db.close();
    say({ closed: true });
    port.close();
  }

  /**
   * Checks repeatedly whether the disk works again. Writes cannot show this, because a node that is not ready gets no
   * requests.
   */
  function probe(): void {
    probing ??= setTimeout(() => {
      probing = undefined;
      if (!canWrite(db)) return probe();
      say({ recovered: true });
    }, PROBE_MS);
  }

  function say(message: FromWriter): void {
    port.postMessage(message);
  }
}

/** Empties the WAL. Closing the connection does not empty the WAL while another process has the file open. */
function emptyLog(db: Database): void {
  try {
    db.exec('pragma busy_timeout = 200; pragma wal_checkpoint(truncate)');
  } catch {
    // Another process is reading, or the disk is full. The data is as safe in the WAL as in the database file.
  }
}

/** Returns undefined if the file cannot be read. The next write then reports the error to its caller. */
function dataVersion(db: Database): number | undefined {
  try {
    return db.get<{ data_version: number }>('pragma data_version')?.data_version;
  } catch {
    return undefined;
  }
}
