/**
 * Runs one task of `file-tasks.ts` on a whole file. The process receives its task over IPC, sends the result, and ends.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import type { Scrubbed } from '../store.ts';
import { damageIn, finishBackup, inspect, removeUnfinished, writeSnapshot } from './backup.ts';
import { type Database, isOutside, withDatabase } from './database.ts';
import { explainUnusable } from './disk-trouble.ts';
import type { FileResult, FileTask, FileTasks, ScrubTask } from './file-tasks.ts';

const TASKS: FileTasks = {
  writeSnapshot,
  /** If the parent has ended, the backup does not get its final name. */
  finishBackup: (input) => finishBackup({ ...input, isWanted }),
  findDamage,
  scrub,
};

let parent: number;
const isWanted = () => process.ppid === parent;

process.once('message', ({ task, input, from }: FileTask) => {
  parent = from;
  // Scrubbing blocks writers.
  if (task !== 'scrub') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  let result: FileResult;
  try {
    if (!isWanted()) throw new Error('The process that requested this task has ended');
    result = { done: TASKS[task](input as never) };
  } catch (error) {
    const { message } = explainUnusable(error, (input as { path: string }).path) as Error;
    result = { failed: message };
  }
  // Normally the parent removes the unfinished file. If the parent was killed, this process removes it. A finished
  // backup already has its final name, and is kept.
  if (!isWanted() && 'file' in (input as object)) removeUnfinished((input as { file: string }).file);
  process.send?.(result, () => process.disconnect?.());
});

/** Maximum number of problems reported. */
const MOST_MISTAKES = 3;

function findDamage({ path, full }: { path: string; full: boolean }): string[] {
  if (full) return inspect(path).mistakes;
  try {
    return withDatabase(path, { readOnly: true }, (db) => {
      // Tables are checked one by one, because a single read of the whole file would keep the write-ahead log from
      // being reset for longer. Measured with 180 MB: 1.3 s in total, and 0.3 s for the longest table. With 1.7 GB,
      // most of it in one table: 3.3 s in total, and 2.0 s for this table.
      const tables = db.all<{ name: string }>(
        "select name from sqlite_schema where type = 'table' order by name",
      );
      const found: string[] = [];
      for (const { name } of tables) {
        if (found.length >= MOST_MISTAKES) break;
        found.push(...damageIn(db, 'quick_check', name));
      }
      return found.slice(0, MOST_MISTAKES);
    });
  } catch (error) {
    if (!isOutside(error)) throw error;
    return [(error as Error).message];
  }
}

/** Maximum time to wait for readers and writers that keep the log from being emptied. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 50;
/** Maximum time that a single attempt to empty the log waits. Writers are blocked meanwhile. */
const BUSY_MS = 20;
const CHUNK_BYTES = 1_048_576;

/**
 * Removes erased content from the disk. Opens the database again for each step, because this process may have no open
 * connection while `holds` reads the file.
 */
function scrub({ path, traces, rewriteBytes }: ScrubTask): Scrubbed {
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

/** Checkpoints the WAL and truncates it. Most of this work does not block writers. */
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
 * Rewrites every page, and blocks all writers for about 1 s per 100 MB. Needs free space for another copy of the file,
 * both beside the file and in the directory for temporary files. Without enough space, changes nothing and returns
 * false.
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
