/** The writer thread: owns the only connection that writes; runs one batch at a time and replies after its commit. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Quotas } from '../../model/quota.ts';
import { type Batch, type BatchResult, type PackedError, packError, runBatch } from './batch.ts';
import { Database } from './database.ts';
import { canWrite } from './disk-trouble.ts';
import { copyInSteps, type StepCopy } from './step-copy.ts';

/** Interval of checks for commits of other processes. */
const FOREIGN_POLL_MS = 250;
/** Interval of checks whether a failed disk can be written again. */
const PROBE_MS = 1_000;
export interface WriterData {
  path: string;
  synchronous: 'FULL' | 'OFF';
  quotas: Quotas;
}

/** Messages to the thread. The replies to batches come in their order. `copyTo` copies the database in steps; null stops the copy. */
export type ToWriter = { batch: Batch } | { copyTo: string | null } | { close: true };

/** Messages from the thread. */
export type FromWriter =
  | { ready: true }
  | { result: BatchResult }
  /** Another process has committed something. */
  | { foreign: true }
  /** After a result with `trouble`: the disk can be written again. */
  | { recovered: true }
  | { copied: { failed: PackedError | null } }
  | { closed: true };

if (parentPort !== null) serve(parentPort, workerData as WriterData);

function serve(port: MessagePort, { path, synchronous, quotas }: WriterData): void {
  const db = new Database(path, { synchronous });
  // This number changes only when another connection commits. In this process only this connection does.
  let seen = dataVersion(db);
  const poll = setInterval(() => {
    const found = dataVersion(db) ?? seen;
    if (found === seen) return;
    seen = found;
    say({ foreign: true });
  }, FOREIGN_POLL_MS);
  let probing: NodeJS.Timeout | undefined;

  let copy: StepCopy | undefined;
  /** One message at a time: operations are asynchronous, and no transaction may be open at the first step of a copy. */
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

  /** Needed because a node that is not ready gets no requests, so that no write would show that the disk works again. */
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

/** Empties the WAL; closing the connection does not, while another process has the file open. */
function emptyLog(db: Database): void {
  try {
    db.exec('pragma busy_timeout = 200; pragma wal_checkpoint(truncate)');
  } catch {
    // Another process is reading, or the disk is full: the data is as safe in the WAL as in the file.
  }
}

/** Undefined while the file cannot be read; the next write reports that to its caller. */
function dataVersion(db: Database): number | undefined {
  try {
    return db.get<{ data_version: number }>('pragma data_version')?.data_version;
  } catch {
    return undefined;
  }
}
