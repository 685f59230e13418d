/**
 * Copies a database in use into another file, a few pages at a time, on the connection that writes.
 *
 * A backup that reads one snapshot keeps the write-ahead log from being reset until the backup ends. This copy keeps no
 * read open. Writes made during the copy also go into the copy, so that the finished copy has the state of one commit.
 * Only the connection that writes can do this, because SQLite starts the copy over whenever another connection commits.
 */
import { close, fdatasync, open } from 'node:fs';
import type { Database } from './database.ts';

/**
 * Number of pages per step (4 MiB). Writes wait about 5 ms for a step. A step must copy more than writes add until the
 * next step.
 */
const PAGES = 1_024;
/**
 * Number of steps between two flushes of the copy. These flushes run beside writes, whereas one flush at the end would
 * delay writes.
 */
const FLUSH_STEPS = 8;
/**
 * Maximum number of restarts, and of consecutive steps without progress. Without these limits, a process that keeps
 * committing could keep the copy from ever ending.
 */
const MOST_RESTARTS = 5;
const MOST_IDLE = 10_000;

export interface StepCopy {
  /** Resolves after the first step, or if the copy has failed. Nothing may be written during the first step. */
  begun: Promise<void>;
  /**
   * Resolves when the file contains the whole database, in WAL mode. Parts of the file may not have been flushed yet.
   */
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
      // If this callback throws, the copy ends.
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

/**
 * Flushes the part of a file that was written so far, one flush at a time. A failed flush is ignored, because the final
 * flush of the whole file reports the failure.
 */
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
