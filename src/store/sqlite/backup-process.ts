/** The process that makes a backup for `backup.ts`: gets its task over IPC, answers, and ends. */
import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { InUseError } from '../../model/error.ts';
import type { MadeBackup } from '../backup.ts';
import type { BackupOrigin } from '../backup-files.ts';
import { beginBackup, copySnapshot } from './backup-write.ts';
import { Database } from './database.ts';
import { explainUnusable } from './disk-trouble.ts';

export interface BackupTask {
  /** The database file. */
  path: string;
  directory: string;
  now: number;
  origin: BackupOrigin;
  /** Whether the parent can copy the database in steps: it is asked to, and answers with `Copied`. */
  inSteps: boolean;
}

/** The answer of the parent: whether the file is a copy. */
export interface Copied {
  isCopied: boolean;
}

/** Progress: one JSON object per line on standard output, because IPC messages are not sent while SQLite is busy. */
export type BackupStep = { copying: string; total: number } | { checking: true };

/** The answer; `failed` is a sentence. */
export type FromBackup = { made: MadeBackup } | { failed: string; inUse: boolean };

const parent = process.ppid;

process.once('message', async (task: BackupTask) => {
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const say = (step: BackupStep) => writeSync(1, `${JSON.stringify(step)}\n`);
  let last: FromBackup;
  try {
    last = { made: await make(task, say) };
  } catch (error) {
    const { message } = explainUnusable(error, task.path) as Error;
    last = { failed: message, inUse: error instanceof InUseError };
  }
  process.send?.(last, () => process.disconnect?.());
});

async function make(
  { path, inSteps, ...task }: BackupTask,
  say: (step: BackupStep) => void,
): Promise<MadeBackup> {
  const db = new Database(path, { readOnly: true });
  try {
    const copied = inSteps ? once(process, 'message') : undefined;
    const { file, finish } = beginBackup(db, {
      ...task,
      onProgress: (progress, file) =>
        say(progress.doing === 'copy' ? { copying: file, total: progress.total } : { checking: true }),
      isWanted: () => process.ppid === parent,
    });
    const [answer] = ((await copied) ?? []) as [Copied?];
    return finish(() => (answer?.isCopied === true ? leaveWalMode(file) : copySnapshot(db, file)));
  } finally {
    db.close();
  }
}

/** A copy of the pages is in WAL mode as the database is, and could not be opened where nothing can be written. */
function leaveWalMode(file: string): void {
  const copy = new Database(file);
  try {
    copy.exec('pragma journal_mode = delete');
  } finally {
    copy.close();
  }
}
