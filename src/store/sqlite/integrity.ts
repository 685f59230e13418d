/** Looks through a database file for damage, in a process of its own that lets others go first. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import type { IntegrityTask } from './integrity-process.ts';

/**
 * Another process, because SQLite cannot be ended in the middle of it otherwise, and the event loop would wait.
 *
 * @returns what is wrong, as sentences; nothing when the signal ended it
 */
export async function findDamage(task: IntegrityTask, signal: AbortSignal): Promise<string[] | undefined> {
  const script = new URL(`./integrity-process${extname(import.meta.url)}`, import.meta.url);
  const child = fork(script, { env: {}, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const closed = once(child, 'close').catch(() => undefined);
  const end = () => child.kill('SIGKILL');
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await new Promise<string[] | undefined>((resolve, reject) => {
      child.once('message', (mistakes: string[]) => resolve(mistakes));
      child.once('error', reject);
      child.once('close', (code, by) =>
        signal.aborted
          ? resolve(undefined)
          : reject(new Error(`The process that looks for damage ended early (${by ?? `exit code ${code}`})`)),
      );
      child.send(task, (error) => {
        // Where it was ended before, that is what `close` tells.
        if (error !== null && !signal.aborted) reject(error);
      });
    });
  } finally {
    signal.removeEventListener('abort', end);
    await closed;
  }
}
