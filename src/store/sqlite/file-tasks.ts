/** Runs what reads or writes whole files of SQLite in a child process, `file-process.ts`: one task in, one answer out. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import type { BackupInput, MadeBackup } from '../backup-files.ts';
import type { Scrubbed } from '../store.ts';

/** What it can do, blocking. */
export interface FileTasks {
  writeSnapshot(of: { path: string; file: string; directory: string }): void;
  finishBackup(of: BackupInput & { file: string }): MadeBackup;
  /** With `full` it compares indexes with their tables, and versions with their records, as well. */
  findDamage(of: { path: string; full: boolean }): string[];
  scrub(of: ScrubTask): Scrubbed;
}

export interface ScrubTask {
  path: string;
  /** What must no longer occur in the file, ignoring the case of ASCII letters. */
  traces: readonly string[];
  /** The size up to which the file is rewritten when traces are found. */
  rewriteBytes: number;
}

/** What the process is sent. */
export interface FileTask {
  task: keyof FileTasks;
  input: unknown;
  /** The process that waits for it: when that one has died, nothing is to be done or named any more. */
  from: number;
}

/** What it answers; `failed` is a sentence. */
export type FileAnswer = { done: unknown } | { failed: string };

/**
 * A process and not a thread, because SQLite must be interruptible in the middle of a statement, run at a lower priority,
 * and not share its file locks with this process: closing a file drops all locks that a process holds on it (POSIX).
 *
 * @param options.signal kills the process
 * @param options.program the file without its ending; tests have their own
 * @throws Error when the task fails, or the process ends without an answer, killed by the signal or otherwise
 */
export async function runFileTask<Name extends keyof FileTasks>(
  task: Name,
  input: Parameters<FileTasks[Name]>[0],
  { signal, program = './file-process' }: { signal?: AbortSignal | undefined; program?: string } = {},
): Promise<ReturnType<FileTasks[Name]>> {
  // With this file's own ending, so that the compiled form finds the compiled program.
  const script = new URL(program + extname(import.meta.url), import.meta.url);
  const child = fork(script, { env: {}, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  // Not `exit`: the answer may still be on its way then.
  const closed = once(child, 'close').catch(() => undefined);
  const kill = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted === true) kill();
  try {
    const answer = await new Promise<FileAnswer>((resolve, reject) => {
      child.once('message', (message) => resolve(message as FileAnswer));
      child.once('error', reject);
      child.once('close', (code, killedBy) =>
        reject(
          new Error(`The process for the task ${task} ended early (${killedBy ?? `exit code ${code}`})`),
        ),
      );
      child.send({ task, input, from: process.pid } satisfies FileTask, (error) => {
        // After a kill `close` says more.
        if (error !== null && signal?.aborted !== true) reject(error);
      });
    });
    if ('failed' in answer) throw new Error(answer.failed);
    return answer.done as ReturnType<FileTasks[Name]>;
  } finally {
    signal?.removeEventListener('abort', kill);
    await closed;
  }
}

/** Checks a database file for damage. Returns what is wrong, as sentences; undefined if the signal ended the check. */
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
