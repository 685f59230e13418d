/**
 * Copies a database in use into another file, a few pages at a time, on the connection that writes.
 *
 * A backup that reads one snapshot keeps the write-ahead log from being reset for its whole duration. This copy has no
 * open read: writes made meanwhile go into the copy as well, so that in the end it is the state of one commit. Only the
 * connection that writes can do that; SQLite starts over whenever another connection commits.
 */
import { close, fdatasync, open } from 'node:fs';
import type { Database } from './database.ts';

/** Pages per step, 4 MiB: writes wait about 5 ms for a step, and it must copy more than they add meanwhile. */
const PAGES = 1_024;
/** Steps between flushes of the copy, which run beside writes; a single flush at the end would delay them. */
const FLUSH_STEPS = 8;
/**
 * Maximum number of restarts, and of consecutive steps without progress. Otherwise a process that keeps committing would
 * keep the copy from ever ending.
 */
const MOST_RESTARTS = 5;
const MOST_IDLE = 10_000;

export interface StepCopy {
  /** Resolves after the first step, during which nothing may be written, or when the copy has failed. */
  begun: Promise<void>;
  /** Resolves when the file contains the whole database, in WAL mode; parts may not have been flushed yet. */
  done: Promise<void>;
  /** Makes `done` reject, unless the copy is complete. */
  stop(): void;
}

/**
 * @param file an empty file
 * @param options.pages pages per step (default: 1,024)
 * @param options.onStep called after each step
 */
export function copyInSteps(
  db: Database,
  file: string,
  { pages = PAGES, onStep = () => {} }: { pages?: number; onStep?: () => void } = {},
): StepCopy {
  const begun = Promise.withResolvers<void>();
  let isStopped = false;
  let steps = 0;
  let restarts = 0;
  let idle = 0;
  let copied = 0;
  const flush = flushing(file);
  const done = db
    .copyTo(file, {
      pages,
      // An error thrown here ends the copy.
      onStep({ totalPages, remainingPages }) {
        begun.resolve();
        const before = copied;
        copied = totalPages - remainingPages;
        if (copied < before) restarts += 1;
        idle = copied === before ? idle + 1 : 0;
        if (isStopped) throw new Error('The copy was stopped');
        if (restarts > MOST_RESTARTS || idle > MOST_IDLE)
          throw new Error('Another process kept writing while the database was copied');
        steps += 1;
        if (steps % FLUSH_STEPS === 0) flush();
        onStep();
      },
    })
    .finally(begun.resolve);
  return {
    begun: begun.promise,
    done,
    stop() {
      isStopped = true;
    },
  };
}

/** Flushes the written part of a file, one flush at a time. A failure is found when the whole file is flushed. */
function flushing(file: string): () => void {
  let isUnderWay = false;
  return () => {
    if (isUnderWay) return;
    isUnderWay = true;
    const end = () => {
      isUnderWay = false;
    };
    open(file, 'r+', (failed, fd) => {
      if (failed !== null) return end();
      fdatasync(fd, () => close(fd, end));
    });
  };
}
