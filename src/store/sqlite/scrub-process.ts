/** The process that scrubs a database file: see `scrub.ts`. It is told its task over IPC, answers, and ends. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { Database, isOutside } from './database.ts';

export interface ScrubTask {
  /** The database file. */
  path: string;
  /** What must not stand in it any more; ASCII letters without regard to case. */
  traces: readonly string[];
  /** The size up to which the file is rewritten when traces are found. */
  rewriteBytes: number;
}

/** How long readers and writers may keep the log from being emptied. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 50;
/** How long one try waits for them, and makes writers wait. */
const BUSY_MS = 20;
const CHUNK_BYTES = 1_048_576;

process.once('message', (task: ScrubTask) => {
  const scrubbed = scrub(task);
  process.send?.(scrubbed, () => process.disconnect?.());
});

function scrub({ path, traces, rewriteBytes }: ScrubTask) {
  let logEmptied = withDatabase(path, BUSY_MS, emptyLog);
  let tracesLeft = holds(path, traces);
  let rewritten = false;
  if (tracesLeft && statSync(path).size <= rewriteBytes) {
    rewritten = withDatabase(path, PATIENCE_MS, rewrite);
    logEmptied = withDatabase(path, BUSY_MS, emptyLog);
    tracesLeft = holds(path, traces);
  }
  return { logEmptied, rewritten, tracesLeft };
}

/** Nothing of this process may be open on the file while `holds` reads it. */
function withDatabase<T>(path: string, busyMs: number, use: (db: Database) => T): T {
  const db = new Database(path, { busyMs });
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/** Moves the log into the database and cuts it to nothing; most of it goes while others write. */
function emptyLog(db: Database): boolean {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (performance.now() < giveUpAt) {
    db.get('pragma wal_checkpoint(passive)');
    if (db.get<{ busy: number }>('pragma wal_checkpoint(truncate)')?.busy === 0) return true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  return false;
}

/**
 * Writes every page anew. Nobody else can write meanwhile: some 1 s for each 100 MB. Needs as much room beside the
 * file and in the directory for temporary files: without it nothing is changed, and the traces are reported.
 */
function rewrite(db: Database): boolean {
  try {
    db.exec('vacuum');
    return true;
  } catch (error) {
    if (isOutside(error)) return false;
    throw error;
  }
}

function holds(path: string, traces: readonly string[]): boolean {
  const wanted = traces.map((trace) => Buffer.from(trace).toString('latin1').toLowerCase());
  const overlap = Math.max(0, ...wanted.map((trace) => trace.length));
  const file = openSync(path, 'r');
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES + overlap);
    for (let at = 0; ; at += CHUNK_BYTES) {
      const bytes = readSync(file, chunk, 0, chunk.length, at);
      if (bytes === 0) return false;
      const text = chunk.toString('latin1', 0, bytes).toLowerCase();
      if (wanted.some((trace) => text.includes(trace))) return true;
    }
  } finally {
    closeSync(file);
  }
}
