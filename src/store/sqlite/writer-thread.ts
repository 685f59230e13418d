/**
 * The writer thread. It owns the only connection that writes. It runs all batches that have arrived as one, and replies
 * after the commit.
 */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Quotas } from '../../model/quota.ts';
import { keepCode } from '../../std/own-files.ts';
import { type Batch, type BatchResult, MAX_CALLS, type PackedError, packError, runBatch } from './batch.ts';
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
 * Messages to the thread. It replies to operations in the order in which they were sent. `copyTo` starts copying the
 * database in steps; a null `copyTo` stops the copy.
 */
export type ToWriter = { batch: Batch } | { copyTo: string | null } | { close: true };

/** Messages from the thread. */
export type FromWriter =
  | { ready: true }
  /** The results of the next operations, which may be those of several batches. */
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
  const arrived: ToWriter[] = [];
  let isWorking = false;

  port.on('message', (message: ToWriter) => {
    arrived.push(message);
    void work();
  });
  say({ ready: true });
  void keepCode();

  /**
   * Handles one message at a time, because operations are asynchronous, and because no transaction may be open at the
   * first step of a copy. Batches that have arrived during the previous transaction share the next one.
   */
  async function work(): Promise<void> {
    if (isWorking) return;
    isWorking = true;
    for (let one = receiveMessageOnPort(port); one !== undefined; one = receiveMessageOnPort(port))
      arrived.push(one.message);
    const [next] = arrived;
    if (next !== undefined && 'batch' in next) await run(joined(arrived));
    else if (next !== undefined) {
      arrived.shift();
      await ('copyTo' in next ? copyTo(next.copyTo) : close());
    }
    isWorking = false;
    if (arrived.length > 0) setImmediate(work);
  }

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

/**
 * Removes the first batches from the messages, as many as fit into a transaction, and joins them. The joined batch has
 * the time of the last one.
 */
function joined(messages: ToWriter[]): Batch {
  const batches: Batch[] = [];
  let calls = 0;
  for (const message of messages) {
    if (!('batch' in message)) break;
    calls += message.batch.calls.length;
    if (batches.length > 0 && calls > MAX_CALLS) break;
    batches.push(message.batch);
  }
  messages.splice(0, batches.length);
  return { ...(batches.at(-1) as Batch), calls: batches.flatMap((batch) => batch.calls) };
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
