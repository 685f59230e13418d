/**
 * Runs commands and returns their output. Starting Node and loading the program takes most of the time of a short
 * command, so `runCommand` uses one child process for all commands, one at a time. `startCommand` starts a separate
 * process, for commands that receive signals or run for a while.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

export const BIN = join(import.meta.dirname, '../../../bin/flowhook.js');
const HOST = join(import.meta.dirname, 'command-host.ts');
const LIMIT_MS = 120_000;

/** Marks the end of a command's output in the streams of the shared process. */
export const END = '\0end of the command\0';

/** The message that makes the shared process run a command. */
export interface CommandCall {
  args: readonly string[];
  directory: string;
  environment: Readonly<Record<string, string>>;
  input: string;
  terminal: { columns: number } | null;
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Surroundings {
  /** The working directory. */
  directory: string;
  /** The whole environment: variables of this process are not passed on. */
  environment?: Record<string, string>;
  /** The content of standard input; null (only for `startCommand`): it stays open for writing. */
  input?: string | null;
  /** Makes the streams look like a terminal with this width (only for `runCommand`). */
  terminal?: { columns: number };
}

let host: Promise<ChildProcess> | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command after the previous commands have ended. `serve`, which listens for signals, gets its own process.
 *
 * @throws Error if the command leaves something open that would keep its process alive
 */
export function runCommand(args: readonly string[], surroundings: Surroundings): Promise<Ended> {
  if (args[0] === 'serve') return startCommand(args, surroundings).ended;
  const { directory, environment = {}, input = '', terminal = null } = surroundings;
  const ended = last.then(() => runInHost({ args, directory, environment, input: input ?? '', terminal }));
  last = ended.catch(() => undefined);
  return ended;
}

async function runInHost(call: CommandCall): Promise<Ended> {
  host ??= startHost();
  const child = await host;
  holdOpen(child, true);
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const output = { stdout: '', stderr: '' };
  const toEnd = (name: 'stdout' | 'stderr') =>
    new Promise<void>((resolve) => {
      const stream = child[name] as Readable;
      const onData = (text: string) => {
        output[name] += text;
        if (!output[name].endsWith(END)) return;
        output[name] = output[name].slice(0, -END.length);
        stream.off('data', onData);
        resolve();
      };
      stream.on('data', onData);
    });
  const outputs = [toEnd('stdout'), toEnd('stderr')];
  const died = new AbortController();
  try {
    child.send(call);
    const [[{ code, left }]] = await Promise.race([
      Promise.all([once(child, 'message', { signal: died.signal }), ...outputs]),
      once(child, 'exit', { signal: died.signal }).then(() => {
        host = undefined;
        throw new Error(`The process ended while it ran ${call.args.join(' ')}: ${JSON.stringify(output)}`);
      }),
    ]);
    if (left.length > 0) {
      host = undefined;
      child.kill('SIGKILL');
      throw new Error(
        `${call.args.join(' ')} left resources open: ${left.join(', ')}. ${JSON.stringify(output)}`,
      );
    }
    return { code, ...output };
  } finally {
    died.abort();
    clearTimeout(timer);
    holdOpen(child, false);
  }
}

async function startHost(): Promise<ChildProcess> {
  const child = fork(HOST, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  child.stdout?.setEncoding('utf8');
  child.stderr?.setEncoding('utf8');
  await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error('The process that runs commands did not start');
    }),
  ]);
  return child;
}

/** Sets whether the child keeps this process alive. */
function holdOpen(child: ChildProcess, isHeld: boolean): void {
  const way = isHeld ? 'ref' : 'unref';
  child[way]();
  child.channel?.[way]();
  for (const stream of [child.stdout, child.stderr]) (stream as unknown as ChildProcess)[way]();
}

export interface Started {
  process: ChildProcess;
  /** Resolves when the stream (default: standard error) matches. Rejects if the process ends before that. */
  says(what: RegExp, stream?: 'stdout' | 'stderr'): Promise<void>;
  ended: Promise<Ended>;
}

/** Starts a command in its own process. */
export function startCommand(args: readonly string[], surroundings: Surroundings): Started {
  const { directory, environment = {}, input = '' } = surroundings;
  const child = spawn(process.execPath, [BIN, ...args], { cwd: directory, env: environment });
  child.stdin.on('error', () => undefined);
  if (input !== null) child.stdin.end(input);
  return listenTo(child);
}

/** Collects the output of a process. */
export function listenTo(child: ChildProcessWithoutNullStreams): Started {
  const output: Ended = { code: null, stdout: '', stderr: '' };
  const listeners = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, 'close').then(([code]) => ({ ...output, code: code as number | null }));
  const says = (what: RegExp, stream: 'stdout' | 'stderr' = 'stderr') =>
    new Promise<void>((resolve, reject) => {
      const look = () => what.test(output[stream]) && resolve();
      listeners.add(look);
      look();
      ended.then(() => reject(new Error(`The process ended without ${what}: ${JSON.stringify(output)}`)));
    });
  return { process: child, says, ended };
}
