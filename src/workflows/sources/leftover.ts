/** Ends what an earlier process of this service may have left behind. */
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProcessMark } from '../../model/job.ts';
import { groupGone, isSameProcess, signalGroup } from './process-mark.ts';

/**
 * Kills the process group that a recorded process leads, if that process is still itself, and waits until the
 * group is gone (5 seconds at most). Usually there is nothing left: a child's watcher ends it with the server.
 *
 * @returns whether something was killed
 */
export async function killLeftover(mark: ProcessMark): Promise<boolean> {
  if (mark.pid === process.pid || !(await isSameProcess(mark))) return false;
  signalGroup(mark.pid, 'SIGKILL');
  await groupGone(mark.pid);
  return true;
}

/** How the temporary directories of one attempt begin. */
export function temporaryPrefix(attempt: { jobId: string; attempt: number }): string {
  return `flowhook-${attempt.jobId}-${attempt.attempt}-`;
}

/** Removes the temporary directory that an attempt could not remove itself because the server was killed. */
export async function removeLeftoverFiles(attempt: { jobId: string; attempt: number }): Promise<void> {
  const prefix = temporaryPrefix(attempt);
  for (const name of await readdir(tmpdir())) {
    if (name.startsWith(prefix)) await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
