/** Brings erased content off the disk: asks a process of its own to empty the log and to look at the bytes. */
import { fork } from 'node:child_process';
import { extname } from 'node:path';
import type { Scrubbed } from '../erasure-operations.ts';
import type { ScrubTask } from './scrub-process.ts';

/**
 * It has to be another process: whoever closes a file loses all locks that his process holds on it (POSIX), so
 * reading the bytes of the database here would take away the locks of the connections that are open here.
 */
export async function scrub(task: ScrubTask): Promise<Scrubbed> {
  const script = new URL(`./scrub-process${extname(import.meta.url)}`, import.meta.url);
  const child = fork(script, { env: {}, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  return new Promise<Scrubbed>((resolve, reject) => {
    child.once('message', (scrubbed: Scrubbed) => resolve(scrubbed));
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`The process that scrubs the database ended early (exit code ${code})`)),
    );
    child.send(task, (error) => error !== null && reject(error));
  });
}
