/** The process that makes a backup for `backup.ts`: gets its task over IPC, answers, and ends. */
import { writeSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { InUseError } from '../../model/error.ts';
import type { MadeBackup } from '../backup.ts';
import type { BackupOrigin } from '../backup-files.ts';
import { writeBackup } from './backup-write.ts';
import { Database } from './database.ts';
import { explainUnusable } from './disk-trouble.ts';

export interface BackupTask {
  /** The database file. */
  path: string;
  directory: string;
  now: number;
  origin: BackupOrigin;
}

/** Progress: one JSON object per line on standard output, because IPC messages are not sent while SQLite is busy. */
export type BackupStep = { copying: string; total: number } | { checking: true };

/** The answer; `failed` is a sentence. */
export type FromBackup = { made: MadeBackup } | { failed: string; inUse: boolean };

const parent = process.ppid;

process.once('message', (task: BackupTask) => {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const say = (step: BackupStep) => writeSync(1, `${JSON.stringify(step)}\n`);
  let last: FromBackup;
  try {
    last = { made: make(task, say) };
  } catch (error) {
    const { message } = explainUnusable(error, task.path) as Error;
    last = { failed: message, inUse: error instanceof InUseError };
  }
  process.send?.(last, () => process.disconnect?.());
});

function make({ path, ...task }: BackupTask, say: (step: BackupStep) => void): MadeBackup {
  const db = new Database(path, { readOnly: true });
  try {
    return writeBackup(db, {
      ...task,
      onProgress: (progress, file) =>
        say(progress.doing === 'copy' ? { copying: file, total: progress.total } : { checking: true }),
      isWanted: () => process.ppid === parent,
    });
  } finally {
    db.close();
  }
}
