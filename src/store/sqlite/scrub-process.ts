/** The process that scrubs a database file for `scrub.ts`: gets its task over IPC, answers, and ends. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { type Database, isOutside, withDatabase } from './database.ts';

export interface ScrubTask {
  /** The database file. */
  path: string;
  /** What must no longer occur in it, ignoring the case of ASCII letters. */
  traces: readonly string[];
  /** The size up to which the file is rewritten when traces are found. */
  rewriteBytes: number;
}

/** How long to wait for readers and writers that keep the log from being emptied. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 50;
/** How long one try waits for them, and blocks writers. */
const BUSY_MS = 20;
const CHUNK_BYTES = 1_048_576;

process.once('message', (task: ScrubTask) => {
  const scrubbed = scrub(task);
  process.send?.(scrubbed, () => process.disconnect?.());
});

/** Opens the database for each step: this process may have no connection open while `holds` reads the file. */
function scrub({ path, traces, rewriteBytes }: ScrubTask) {
  let logEmptied = withDatabase(path, { busyMs: BUSY_MS }, emptyLog);
  let tracesLeft = holds(path, traces);
  let rewritten = false;
  if (tracesLeft && statSync(path).size <= rewriteBytes) {
    rewritten = withDatabase(path, { busyMs: PATIENCE_MS }, rewrite);
    logEmptied = withDatabase(path, { busyMs: BUSY_MS }, emptyLog);
    tracesLeft = holds(path, traces);
  }
  return { logEmptied, rewritten, tracesLeft };
}

/** Checkpoints the WAL and truncates it; most of that does not block writers. */
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
 * Rewrites every page. Blocks all writers, for some 1 s per 100 MB. Needs as much free space beside the file and in the
 * directory for temporary files; without it nothing is changed and false is returned.
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
