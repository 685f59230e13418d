/** Makes a backup while the database is in use, in a low-priority process of its own. */
import { rmSync, statSync, truncateSync } from 'node:fs';
import { InUseError } from '../../model/error.ts';
import type { BackupProgress, MadeBackup } from '../backup.ts';
import type { BackupStep, BackupTask, Copied, FromBackup } from './backup-process.ts';
import { runChildTask } from './child-task.ts';

/** How often the size of the growing file is reported. */
const PROGRESS_MS = 100;

/**
 * @param options.copyTo copies the database into an empty file without holding a read open; if it rejects, or is not
 *   given, a snapshot is read
 * @throws what `beginBackup` throws, or Error when the process was killed, by the signal or otherwise
 */
export async function backup(
  task: Omit<BackupTask, 'inSteps'>,
  {
    signal,
    onProgress = () => {},
    copyTo,
  }: {
    signal?: AbortSignal;
    onProgress?: (progress: BackupProgress) => void;
    copyTo?: (file: string, signal?: AbortSignal) => Promise<void>;
  },
): Promise<MadeBackup> {
  let watching: NodeJS.Timeout | undefined;
  let growing: string | undefined;
  let copying: Promise<void> | undefined;
  const onLine = (line: string, tell: (answer: Copied) => void) => {
    clearInterval(watching);
    const step = JSON.parse(line) as BackupStep;
    if ('checking' in step) return onProgress({ doing: 'check' });
    const { copying: file, total } = step;
    growing = file;
    watching = setInterval(() => onProgress({ doing: 'copy', bytes: sizeOf(file), total }), PROGRESS_MS);
    copying = copyTo?.(file, signal).then(
      () => tell({ isCopied: true }),
      () => {
        // What there is of it would be taken for a database.
        truncateSync(file);
        tell({ isCopied: false });
      },
    );
  };
  try {
    const purpose = 'The process that makes the backup';
    const whole = { ...task, inSteps: copyTo !== undefined } satisfies BackupTask;
    const answer = await runChildTask<FromBackup, Copied>(whole, {
      program: './backup-process',
      purpose,
      onLine,
      ...(signal === undefined ? {} : { signal }),
    });
    if ('made' in answer) return answer.made;
    throw answer.inUse ? new InUseError(answer.failed) : new Error(answer.failed);
  } finally {
    clearInterval(watching);
    await copying?.catch(() => undefined);
    // A killed process could not clean up.
    for (const end of growing === undefined ? [] : ['', '-journal', '-wal', '-shm']) {
      rmSync(`${growing}${end}`, { force: true });
    }
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
