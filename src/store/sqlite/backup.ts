/** Makes a backup beside whatever uses the database, in a process of its own that lets others go first. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { InUseError } from '../../model/error.ts';
import type { BackupProgress, MadeBackup } from '../backup.ts';
import type { BackupStep, BackupTask, FromBackup } from './backup-process.ts';

/** How often it is looked how far the file has grown. */
const LOOK_MS = 100;

/**
 * Another process, not a thread: it can be given a lower priority everywhere, its memory goes with it, and it can be
 * ended at once although SQLite is in the middle of it.
 *
 * @throws as `writeBackup`, or Error when it was ended, by the signal or by somebody else
 */
export async function backup(
  task: BackupTask,
  options: { signal?: AbortSignal; onProgress?: (progress: BackupProgress) => void } = {},
): Promise<MadeBackup> {
  const { signal, onProgress = () => {} } = options;
  const script = new URL(`./backup-process${extname(import.meta.url)}`, import.meta.url);
  const child = fork(script, { env: {}, execArgv: [], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  // What it said last comes before that, not before it has exited.
  const closed = once(child, 'close');
  const end = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted === true) end();
  let looking: NodeJS.Timeout | undefined;
  let growing: string | undefined;
  try {
    return await new Promise<MadeBackup>((resolve, reject) => {
      createInterface({ input: child.stdout as Readable }).on('line', (line) => {
        clearInterval(looking);
        const step = JSON.parse(line) as BackupStep;
        if ('checking' in step) return onProgress({ doing: 'check' });
        const { copying, total } = step;
        growing = copying;
        looking = setInterval(() => onProgress({ doing: 'copy', bytes: sizeOf(copying), total }), LOOK_MS);
      });
      child.once('message', (message: FromBackup) => {
        if ('made' in message) resolve(message.made);
        else reject(message.inUse ? new InUseError(message.failed) : new Error(message.failed));
      });
      child.once('error', reject);
      child.once('close', (code, by) =>
        reject(new Error(`The process that makes the backup ended early (${by ?? `exit code ${code}`})`)),
      );
      child.send(task, (error) => error !== null && reject(error));
    });
  } finally {
    clearInterval(looking);
    signal?.removeEventListener('abort', end);
    await closed.catch(() => undefined);
    // When it was ended it could not clean up.
    for (const left of growing === undefined ? [] : [growing, `${growing}-journal`])
      rmSync(left, { force: true });
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
