/** A user who has only the machine's own Node and npm. */
import { spawn } from 'node:child_process';
import { delimiter } from 'node:path';
import type { TestContext } from 'node:test';
import { listenTo, type Started } from './commands.ts';

/**
 * Returns the environment: an empty home directory, therefore an empty npm cache, and none of the repository's programs
 * in PATH, where npm puts them first.
 */
export function newcomerIn(home: string): { HOME: string; PATH: string } {
  const directories = (process.env.PATH ?? '').split(delimiter);
  return { HOME: home, PATH: directories.filter((one) => !one.includes('node_modules')).join(delimiter) };
}

export interface Terminal extends Started {
  /** Presses Ctrl-C: every process in the foreground receives SIGINT. */
  interrupt(): void;
}

/** Runs lines in a shell, in its own process group. */
export function terminal(
  t: TestContext,
  lines: string,
  { directory, environment }: { directory: string; environment: Readonly<Record<string, string>> },
): Terminal {
  const child = spawn('bash', ['-c', lines], { cwd: directory, env: environment, detached: true });
  const signalAll = (signal: NodeJS.Signals) => process.kill(-(child.pid ?? 0), signal);
  t.after(() => {
    try {
      signalAll('SIGKILL');
    } catch {
      // All processes have already ended.
    }
  });
  return { ...listenTo(child), interrupt: () => signalAll('SIGINT') };
}
