/** Makes a backup while the database is in use, in a low-priority process of its own. */
import { rmSync, statSync } from 'node:fs';
import { InUseError } from '../../model/error.ts';
import type { BackupProgress, MadeBackup } from '../backup.ts';
import type { BackupStep, BackupTask, FromBackup } from './backup-process.ts';
import { runChildTask } from './child-task.ts';

/** How often the size of the growing file is reported. */
const PROGRESS_MS = 100;

/** @throws what `writeBackup` throws, or Error when the process was killed, by the signal or otherwise */
export async function backup(
  task: BackupTask,
  {
    signal,
    onProgress = () => {},
  }: { signal?: AbortSignal; onProgress?: (progress: BackupProgress) => void },
): Promise<MadeBackup> {
  let watching: NodeJS.Timeout | undefined;
  let growing: string | undefined;
  const onLine = (line: string) => {
    clearInterval(watching);
    const step = JSON.parse(line) as BackupStep;
    if ('checking' in step) return onProgress({ doing: 'check' });
    const { copying, total } = step;
    growing = copying;
    watching = setInterval(() => onProgress({ doing: 'copy', bytes: sizeOf(copying), total }), PROGRESS_MS);
  };
  try {
    const purpose = 'The process that makes the backup';
    const answer = await runChildTask<FromBackup>(task, {
      program: './backup-process',
      purpose,
      onLine,
      ...(signal === undefined ? {} : { signal }),
    });
    if ('made' in answer) return answer.made;
    throw answer.inUse ? new InUseError(answer.failed) : new Error(answer.failed);
  } finally {
    clearInterval(watching);
    // A killed process could not clean up.
    for (const left of growing === undefined ? [] : [growing, `${growing}-journal`]) {
      rmSync(left, { force: true });
    }
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
