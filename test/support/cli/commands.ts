/**
 * Runs commands and tells what they printed. Starting Node and loading the program takes most of the time of a short
 * command: `runCommand` has one process beside the test do that once and run all commands, one after the other.
 * `startCommand` starts a process of its own, to be sent signals, or to end by itself.
 */
import { type ChildProcess, type ChildProcessWithoutNullStreams, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

export const BIN = join(import.meta.dirname, '../../../bin/flowhook.js');
const HOST = join(import.meta.dirname, 'command-host.ts');
const LIMIT_MS = 120_000;

/** What follows the output of a command in the streams of the process that all share. */
export const END = '\0end of the command\0';

/** What that process is told of a command. */
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
  /** All of it: nothing of this process's is passed on. */
  environment?: Record<string, string>;
  /** What standard input holds; null, of a process of its own: it stays open, to be written to. */
  input?: string | null;
  /** Whether the streams are to pass for a terminal, and how wide (only of `runCommand`). */
  terminal?: { columns: number };
}

let host: Promise<ChildProcess> | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command, once those before it have ended. `serve`, which listens for signals, has a process of its own.
 *
 * @throws Error when the command leaves something open that would keep a process of its own from ending
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
  const said = { stdout: '', stderr: '' };
  const toEnd = (name: 'stdout' | 'stderr') =>
    new Promise<void>((resolve) => {
      const stream = child[name] as Readable;
      const onData = (text: string) => {
        said[name] += text;
        if (!said[name].endsWith(END)) return;
        said[name] = said[name].slice(0, -END.length);
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
        throw new Error(`The process ended that ran ${call.args.join(' ')}: ${JSON.stringify(said)}`);
      }),
    ]);
    if (left.length > 0) {
      host = undefined;
      child.kill('SIGKILL');
      throw new Error(
        `${call.args.join(' ')} would not end: it left ${left.join(', ')}. ${JSON.stringify(said)}`,
      );
    }
    return { code, ...said };
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

/** Whether this process goes on for the sake of that one, which ends with it. */
function holdOpen(child: ChildProcess, isHeld: boolean): void {
  const way = isHeld ? 'ref' : 'unref';
  child[way]();
  child.channel?.[way]();
  for (const stream of [child.stdout, child.stderr]) (stream as unknown as ChildProcess)[way]();
}

export interface Started {
  process: ChildProcess;
  /** Resolves when the stream (standard error unless told) has had this; rejects when the process ends without it. */
  says(what: RegExp, stream?: 'stdout' | 'stderr'): Promise<void>;
  ended: Promise<Ended>;
}

/** Starts a command in a process of its own. */
export function startCommand(args: readonly string[], surroundings: Surroundings): Started {
  const { directory, environment = {}, input = '' } = surroundings;
  const child = spawn(process.execPath, [BIN, ...args], { cwd: directory, env: environment });
  child.stdin.on('error', () => undefined);
  if (input !== null) child.stdin.end(input);
  return listenTo(child);
}

/** Gathers what a process prints until it ends. */
export function listenTo(child: ChildProcessWithoutNullStreams): Started {
  const said: Ended = { code: null, stdout: '', stderr: '' };
  const listeners = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
      for (const listener of listeners) listener();
    });
  }
  const ended = once(child, 'close').then(([code]) => ({ ...said, code: code as number | null }));
  const says = (what: RegExp, stream: 'stdout' | 'stderr' = 'stderr') =>
    new Promise<void>((resolve, reject) => {
      const look = () => what.test(said[stream]) && resolve();
      listeners.add(look);
      look();
      ended.then(() => reject(new Error(`It ended without ${what}: ${JSON.stringify(said)}`)));
    });
  return { process: child, says, ended };
}
