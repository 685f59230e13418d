/** Runs tasks that read or write whole files of SQLite in a child process, `file-process.ts`: one task per process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { commandOf } from '../../std/own-files.ts';
import type { BackupInput, MadeBackup } from '../backup-files.ts';
import type { Scrubbed } from '../store.ts';

/** The tasks; each blocks. */
export interface FileTasks {
  writeSnapshot(of: { path: string; file: string; directory: string }): void;
  finishBackup(of: BackupInput & { file: string }): MadeBackup;
  /** If `full` is set, also compares indexes with their tables, and versions with their records. */
  findDamage(of: { path: string; full: boolean }): string[];
  scrub(of: ScrubTask): Scrubbed;
}

export interface ScrubTask {
  path: string;
  /** Text that must no longer occur in the file. The case of ASCII letters is ignored. */
  traces: readonly string[];
  /** Maximum size of a file that is rewritten when traces are found. */
  rewriteBytes: number;
}

export interface FileTask {
  task: keyof FileTasks;
  input: unknown;
  /**
   * The id of the process that waits for the result. Once this process has ended, no task starts, and no backup gets
   * its final name.
   */
  from: number;
}

/** The result of a task. If the task failed, `failed` is a sentence that says why. */
export type FileResult = { done: unknown } | { failed: string };

/**
 * Runs a task in a process instead of a thread, for three reasons: SQLite must be interruptible in the middle of a
 * statement, run at a low priority, and not share its file locks with this process. On POSIX systems, closing a file
 * drops all locks that the process has on this file.
 *
 * @param options.signal kills the process
 * @param options.command the command that starts the process; tests have programs of their own
 * @throws Error if the task fails, or if the process ends without a result, killed by the signal or otherwise
 */
export async function runFileTask<Name extends keyof FileTasks>(
  task: Name,
  input: Parameters<FileTasks[Name]>[0],
  {
    signal,
    command = commandOf('file-process'),
  }: { signal?: AbortSignal | undefined; command?: readonly string[] } = {},
): Promise<ReturnType<FileTasks[Name]>> {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { env: {}, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  // The event is not `exit`, because the result may still be on its way when the process exits.
  const closed = once(child, 'close').catch(() => undefined);
  const kill = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted === true) kill();
  try {
    const result = await new Promise<FileResult>((resolve, reject) => {
      child.once('message', (message) => resolve(message as FileResult));
      child.once('error', reject);
      child.once('close', (code, killedBy) =>
        reject(
          new Error(`The process for the task ${task} ended early (${killedBy ?? `exit code ${code}`})`),
        ),
      );
      child.send({ task, input, from: process.pid } satisfies FileTask, (error) => {
        // After a kill, the event `close` says more than this error.
        if (error !== null && signal?.aborted !== true) reject(error);
      });
    });
    if ('failed' in result) throw new Error(result.failed);
    return result.done as ReturnType<FileTasks[Name]>;
  } finally {
    signal?.removeEventListener('abort', kill);
    await closed;
  }
}

/**
 * Checks a database file for damage. Returns each problem as a sentence, or undefined if the signal aborted the check.
 */
export async function findDamage(
  input: Parameters<FileTasks['findDamage']>[0],
  signal: AbortSignal,
): Promise<string[] | undefined> {
  try {
    return await runFileTask('findDamage', input, { signal });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
