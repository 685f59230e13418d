/** Runs `flowhook serve` in its own process, so that tests can kill it or use it like a user. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { atEnd } from './at-end.ts';
import { launchOf } from './cli/launch.ts';

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'flowhook.js');

export interface ServerProcess {
  url: string;
  process: ChildProcess;
  /** The output so far, of both streams. */
  output(): string;
  /** Sends SIGKILL, and waits until the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM, and waits for the exit code. */
  stop(): Promise<number | null>;
}

/**
 * @param environment settings such as `FLOWHOOK_DATA`. Settings of this process are not passed on
 * @param options.program default: the repository's `flowhook.js`. See `launchOf`
 * @param options.directory the working directory, where it finds `flowhook.yaml`
 * @param options.errors a file for its standard error
 * @throws Error with its output if it ends before it listens
 */
export async function startServerProcess(
  environment: Record<string, string>,
  options: { program?: string; directory?: string; errors?: string } = {},
): Promise<ServerProcess> {
  const errors = options.errors === undefined ? 'pipe' : openSync(options.errors, 'a');
  const launch = launchOf(options.program ?? BIN);
  const child = spawn(launch.file, [...launch.args, 'serve'], {
    cwd: options.directory,
    env: {
      ...launch.environment,
      FLOWHOOK_PORT: '0',
      // Otherwise each server would build the dashboard if it is missing.
      FLOWHOOK_DASHBOARD: 'off',
      ...environment,
    },
    stdio: ['ignore', 'pipe', errors],
  });
  if (typeof errors === 'number') closeSync(errors);
  const lines: string[] = [];
  const exited = once(child, 'exit');
  atEnd(() => child.kill('SIGKILL'));
  const url = await new Promise<string>((resolve, reject) => {
    const listen = (line: string) => {
      lines.push(line);
      const found = /^flowhook listening on (\S+)$/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    };
    if (child.stdout !== null) createInterface({ input: child.stdout }).on('line', listen);
    if (child.stderr !== null) {
      createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
    }
    child.once('exit', (code, signal) =>
      reject(new Error(`The server ended (${signal ?? code}) before it listened:\n${lines.join('\n')}`)),
    );
  });
  return {
    url,
    process: child,
    output: () => lines.join('\n'),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
      return child.exitCode;
    },
  };
}
