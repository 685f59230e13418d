/** Runs one of the programs beside this file (`*-process.ts`) as a child process: one task in, one answer out. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { extname } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * A process and not a thread where SQLite must be interruptible in the middle of a statement, run at a lower priority,
 * or not share its file locks with this process.
 *
 * @param options.program the file without its ending, such as `./scrub-process`
 * @param options.purpose begins the error when it fails: `The process that …`
 * @param options.signal kills it
 * @param options.onLine receives each line that it prints, and a function that answers it
 * @throws Error when the process ends without an answer, killed by the signal or otherwise
 */
export async function runChildTask<Answer, Told extends object = never>(
  task: object,
  options: {
    program: string;
    purpose: string;
    signal?: AbortSignal;
    onLine?: (line: string, tell: (told: Told) => void) => void;
  },
): Promise<Answer> {
  const { program, purpose, signal, onLine } = options;
  // With this file's own ending, so that the compiled form finds the compiled program.
  const script = new URL(program + extname(import.meta.url), import.meta.url);
  const output = onLine === undefined ? 'ignore' : 'pipe';
  const child = fork(script, { env: {}, execArgv: [], stdio: ['ignore', output, 'inherit', 'ipc'] });
  // Not `exit`: the answer may still be on its way then.
  const closed = once(child, 'close').catch(() => undefined);
  const kill = () => child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  if (signal?.aborted === true) kill();
  try {
    return await new Promise<Answer>((resolve, reject) => {
      if (onLine !== undefined && child.stdout !== null) {
        const tell = (told: Told) => void (child.connected && child.send(told, () => {}));
        createInterface({ input: child.stdout }).on('line', (line) => onLine(line, tell));
      }
      child.once('message', (answer) => resolve(answer as Answer));
      child.once('error', reject);
      child.once('close', (code, killedBy) =>
        reject(new Error(`${purpose} ended early (${killedBy ?? `exit code ${code}`})`)),
      );
      child.send(task, (error) => {
        // After a kill `close` says more.
        if (error !== null && signal?.aborted !== true) reject(error);
      });
    });
  } finally {
    signal?.removeEventListener('abort', kill);
    await closed;
  }
}
