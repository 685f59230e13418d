/** Cleans up after runs of an earlier process of this service: their processes and temporary directories. */
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProcessMark } from '../../model/job.ts';
import { groupGone, isSameProcess, signalGroup } from './process-mark.ts';
import { removeRunDirectory } from './run-directory.ts';

/**
 * Kills the process group that a recorded process leads, if its pid has not been reused, and waits until the group is
 * gone (5 s at most). Usually nothing is left, because a child's watcher ends it with the server.
 *
 * @returns whether a group was killed
 */
export async function killLeftover(mark: ProcessMark): Promise<boolean> {
  if (mark.pid === process.pid || !(await isSameProcess(mark))) return false;
  signalGroup(mark.pid, 'SIGKILL');
  await groupGone(mark.pid);
  return true;
}

/** The prefix of the temporary directories of one attempt. */
export function temporaryPrefix(attempt: { jobId: string; attempt: number }): string {
  return `flowhook-${attempt.jobId}-${attempt.attempt}-`;
}

/** Removes the temporary directories of an attempt during which the server was killed. */
export async function removeLeftoverFiles(attempt: { jobId: string; attempt: number }): Promise<void> {
  const prefix = temporaryPrefix(attempt);
  for (const name of await readdir(tmpdir())) {
    if (name.startsWith(prefix)) await removeRunDirectory(join(tmpdir(), name));
  }
}
