/** Removes erased content from the disk, in a process of its own. */
import type { Scrubbed } from '../erasure-operations.ts';
import { runChildTask } from './child-task.ts';
import type { ScrubTask } from './scrub-process.ts';

/**
 * It must be another process: closing a file drops all locks that the process holds on it (POSIX), so reading the bytes
 * of the database here would release the locks of the connections that are open here.
 */
export function scrub(task: ScrubTask): Promise<Scrubbed> {
  return runChildTask(task, {
    program: './scrub-process',
    purpose: 'The process that scrubs the database',
  });
}
