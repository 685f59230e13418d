/**
 * Copies a database in use into another file, a few pages at a time, on the connection that writes.
 *
 * A backup that reads one snapshot keeps the write-ahead log from being reset for as long as it takes. This holds no read
 * open: what is written meanwhile goes into the copy as well, which in the end is the state of one commit. Only the
 * connection that writes can do that; SQLite starts over whenever another one has committed.
 */
import { close, fdatasync, open } from 'node:fs';
import type { Database } from './database.ts';

/** Pages of a step, 4 MiB: the writes wait for it, some 5 ms, and it must be more than they add meanwhile. */
const PAGES = 1_024;
/** Steps after which the copy is flushed, beside the writes: they would wait for all of it at the end. */
const FLUSH_STEPS = 8;
/**
 * How often it starts over, and how many steps in a row bring nothing. Somebody who commits all the time would keep it
 * from ever coming to an end.
 */
const MOST_RESTARTS = 5;
const MOST_IDLE = 10_000;

export interface StepCopy {
  /** Resolves after the first step, during which nothing may be written, or when it has failed. */
  begun: Promise<void>;
  /** Resolves when the file is the whole database, in WAL mode; not all of it is on the disk then. */
  done: Promise<void>;
  /** Makes `done` reject, if there is still something to do. */
  stop(): void;
}

/**
 * @param file an empty file
 * @param options.pages of each step; 1,024 by default
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
      // What this throws ends the copy.
      onStep({ totalPages, remainingPages }) {
        begun.resolve();
        const before = copied;
        copied = totalPages - remainingPages;
        if (copied < before) restarts += 1;
        idle = copied === before ? idle + 1 : 0;
        if (isStopped) throw new Error('The copy was stopped');
        if (restarts > MOST_RESTARTS || idle > MOST_IDLE)
          throw new Error('Another process kept writing while it was copied');
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

/** Flushes what has been written of a file, one flush at a time. A failure shows when the whole file is flushed. */
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
