/**
 * The program that starts the processes of runs, in a small process of its own.
 *
 *     server ──IPC──▶ launcher ──spawns──▶ a program that leads a process group ──▶ its own children (same group)
 *
 * Starting a process copies the page tables of its parent, which blocks a server of 160 MB for 6 ms and one of 370 MB for
 * 18 ms; in this process it takes 1 ms. The launcher also kills the groups of all runs when the server ends, however it
 * ends: foreign programs would ignore a disconnect message, and the kernel's parent-death signal does not reach
 * grandchildren. If the launcher dies, the server kills the groups. A program that starts its own session (`setsid`)
 * leaves the group and escapes.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { groupGone, markOf, signalGroup, watchMemory } from './groups.ts';
import type { Surroundings } from './harness-input.ts';
import { type FromLauncher, type Launch, PIPES, type Pipe, type ToLauncher } from './launcher-messages.ts';
import { Prepared } from './prepared.ts';
import {
  filesEnvironment,
  handOver,
  makeRunDirectory,
  type RunDirectory,
  type RunFiles,
  readStateLeft,
  removeRunDirectory,
  removeSmallDirectory,
  withFiles,
  writeRunFiles,
} from './run-files.ts';

/** A pipe is not read while the server has this many bytes of it to process, so a full pipe blocks the program. */
const WINDOW_BYTES = 256 << 10;
/**
 * How long a pipe must be silent before it is closed after the process group is gone. Only a process that has left the
 * group can still hold the pipe open.
 */
const SILENT_MS = 1_000;
/**
 * The `oom_score_adj` of the launcher and of all runs. When the machine runs out of memory, the kernel should kill a
 * run rather than the server. With a higher value, the kernel would also kill runs that are not the cause.
 */
const OOM_SCORE_ADJ = 300;
/** The name of the file in TMPDIR that becomes the standard input of a foreign program. */
const STDIN = 'stdin.json';
/** Our own programs write log lines to standard output too. */
const HARNESS = ['/bin/sh', '-c', 'exec "$@" 1>&2', 'sh'];

interface Started {
  pid: number;
  child: ChildProcess;
  hasExited: boolean;
  directory: RunDirectory;
  launch: Launch;
  pipes: Map<Pipe, RelayedPipe>;
}

interface RelayedPipe {
  stream: Readable & Partial<Writable>;
  /** Bytes that were sent to the server, and that the server has not processed. */
  unprocessed: number;
  /** Runs from the end of the process group, and again after each piece of data. */
  silence?: NodeJS.Timeout;
}

const runs = new Map<number, Started>();
const prepared = new Prepared(spawnHarness);

try {
  writeFileSync('/proc/self/oom_score_adj', String(OOM_SCORE_ADJ));
} catch {
  // This system has no such file, or the service already has a higher value.
}
// A service manager sends these to all processes of the service. The launcher ends after the server, which first
// releases its jobs.
for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGQUIT'] as const) process.on(name, () => {});
process.on('message', receive);
process.on('disconnect', () => {
  for (const { pid, hasExited, directory, launch } of runs.values()) {
    if (hasExited) continue;
    signalGroup(pid, 'SIGKILL');
    // The files may contain secrets. What else is in TMPDIR is removed by the next server that reclaims the job.
    if (launch.owner === undefined) removeSmallDirectory(directory.path, filesOf(launch));
  }
  prepared.end();
  process.exit(0);
});

let untold: FromLauncher[] = [];

/** Sends the messages of one turn of the event loop together. Most of the time of a short run goes into its messages. */
function tell(message: FromLauncher): void {
  if (untold.push(message) > 1) return;
  setImmediate(() => {
    // An error means that the server is gone. The event `disconnect` follows.
    process.send?.(untold, undefined, undefined, () => {});
    untold = [];
  });
}

function receive(message: ToLauncher): void {
  if ('launch' in message) {
    start(message.run, message.launch).catch((cause: NodeJS.ErrnoException) => {
      const { message: text, code, path } = cause;
      tell({ run: message.run, refused: { message: text, code, path } });
    });
    return;
  }
  const run = runs.get(message.run);
  if (run === undefined) return;
  if ('signal' in message) {
    // Once the leader has been reaped, another group may get its id.
    if (!run.hasExited) signalGroup(run.pid, message.signal);
    return;
  }
  const pipe = run.pipes.get(message.pipe);
  if (pipe === undefined) return;
  if ('data' in message) pipe.stream.write?.(message.data);
  else if ('closed' in message) pipe.stream.destroy();
  else {
    pipe.unprocessed -= message.took;
    if (pipe.unprocessed < WINDOW_BYTES) pipe.stream.resume();
    pipe.silence?.refresh();
  }
}

/** @throws Error if the program cannot be started */
async function start(run: number, launch: Launch): Promise<void> {
  const { owner } = launch;
  const directory = makeRunDirectory(launch.temporaryPrefix, owner);
  try {
    const files = launch.files && writeRunFiles(directory.temporary, launch.files);
    const child = launch.harness ? startHarness(directory, launch) : startCommand(directory, files, launch);
    if (child.pid === undefined) throw notStarted((await once(child, 'error'))[0]);
    // The start of the process is read before the event loop can reap it.
    const marking = markOf(child.pid);
    follow(run, child, { directory, files, launch });
    tell({
      run,
      started: (await marking) ?? { pid: child.pid, startedAt: 'ended' },
      directory: directory.path,
    });
  } catch (error) {
    await removeRunDirectory(directory.path);
    throw error;
  }
}

function startCommand(directory: RunDirectory, files: RunFiles | undefined, launch: Launch): ChildProcess {
  const input = join(directory.temporary, STDIN);
  writeFileSync(input, launch.stdin, { mode: 0o600 });
  const stdin = openSync(input, 'r');
  try {
    handOver(directory, launch.owner);
    return spawnGroup(files ? withFiles(launch.argv, files) : launch.argv, launch, {
      cwd: launch.directory,
      env: {
        ...launch.environment,
        ...surroundings(directory, launch).environment,
        ...(files === undefined ? {} : filesEnvironment(files)),
      },
      stdio: [stdin, 'pipe', 'pipe'],
    });
  } finally {
    closeSync(stdin);
  }
}

function startHarness(directory: RunDirectory, launch: Launch): ChildProcess {
  handOver(directory, launch.owner);
  const child = (launch.preparable ? prepared.take(launch) : undefined) ?? spawnHarness(launch);
  const { environment } = surroundings(directory, launch);
  // The shell that starts the program sets PWD to another directory.
  const input = { directory: launch.directory, environment: { ...environment, PWD: launch.directory } };
  child.stdin?.end(`${JSON.stringify(input satisfies Surroundings)}\n${launch.stdin}`);
  if (launch.preparable) prepared.another(launch);
  return child;
}

/** Starts one of our own programs, which waits for its input. */
function spawnHarness(launch: Launch): ChildProcess {
  const stdio: StdioOptions = [
    'pipe',
    'ignore',
    'pipe',
    'pipe',
    'pipe',
    ...(launch.hasChannel ? ['pipe' as const] : []),
  ];
  const child = spawnGroup([...HARNESS, ...launch.argv], launch, {
    cwd: '/',
    env: launch.environment,
    stdio,
  });
  child.stdin?.on('error', () => {});
  return child;
}

function surroundings({ temporary }: RunDirectory, launch: Launch): Surroundings {
  const { directory, environment, owner, runEnvironment } = launch;
  const home = owner !== undefined && environment.HOME === undefined ? { HOME: temporary } : {};
  return { directory, environment: { ...home, ...runEnvironment, TMPDIR: temporary } };
}

/** @throws Error; otherwise, the `pid` is undefined if the process could not be started */
function spawnGroup(
  [program = '', ...rest]: readonly string[],
  launch: Launch,
  options: { cwd: string; env: Record<string, string>; stdio: StdioOptions },
): ChildProcess {
  const { owner } = launch;
  try {
    return spawn(program, rest, { ...options, ...owner, detached: true });
  } catch (error) {
    throw notStarted(error as NodeJS.ErrnoException);
  }
}

function notStarted(cause: NodeJS.ErrnoException): Error {
  const error = new Error(`A child process could not be started: ${cause.message}`);
  // The path is not in the temporary directory, about which `child.ts` has sentences.
  return Object.assign(error, { code: cause.code, path: cause.syscall ?? 'spawn' });
}

/** Relays the pipes of a process, and ends its group when it exits. */
function follow(
  run: number,
  child: ChildProcess,
  { directory, files, launch }: { directory: RunDirectory; files: RunFiles | undefined; launch: Launch },
): void {
  const pid = child.pid as number;
  const started: Started = { pid, child, hasExited: false, directory, launch, pipes: new Map() };
  runs.set(run, started);
  const [, output, log, records, result, channel] = child.stdio as (RelayedPipe['stream'] | null)[];
  const streams = { records: launch.harness ? records : output, log, result, channel };
  for (const pipe of PIPES) {
    const stream = streams[pipe];
    if (stream) started.pipes.set(pipe, relay(run, pipe, stream));
  }
  const unwatch = watchMemory({
    groupId: pid,
    limitBytes: launch.memoryBytes,
    onExcess(excessBytes) {
      tell({ run, excessBytes });
      if (!started.hasExited) signalGroup(pid, 'SIGKILL');
    },
  });
  child.once('exit', (code, signal) => {
    // The group is killed in the same turn of the event loop in which its leader was reaped, because another group may
    // get its id later.
    signalGroup(pid, 'SIGKILL');
    started.hasExited = true;
    unwatch();
    tell({ run, exited: { code, signal } });
    void (async () => {
      const remains = !(await groupGone(pid).catch(() => false));
      const output = started.pipes.get('records');
      if (output !== undefined) closeWhenSilent(output);
      const state =
        code === 0 && files && launch.files ? readStateLeft(files.state, launch.files.state) : undefined;
      const unremoved = await removed(directory, launch);
      tell({ run, gone: { remains, state, unremoved } });
      forget(run);
    })();
  });
}

function relay(run: number, pipe: Pipe, stream: RelayedPipe['stream']): RelayedPipe {
  const relayed: RelayedPipe = { stream, unprocessed: 0 };
  stream.on('data', (data: Buffer) => {
    relayed.unprocessed += data.length;
    relayed.silence?.refresh();
    if (relayed.unprocessed >= WINDOW_BYTES) stream.pause();
    tell({ run, pipe, data });
  });
  // The exit of the child is reported instead.
  stream.on('error', () => {});
  stream.once('close', () => {
    clearTimeout(relayed.silence);
    tell({ run, pipe, closed: true });
    forget(run);
  });
  return relayed;
}

/** Closes a pipe whose writers are gone once everything in it was read. */
function closeWhenSilent(pipe: RelayedPipe): void {
  if (pipe.stream.destroyed) return;
  pipe.silence = setTimeout(() => {
    const { unprocessed } = pipe;
    // Data that has arrived while this process did not run is read before the callback.
    setImmediate(() => {
      if (pipe.stream.isPaused() || pipe.unprocessed !== unprocessed) pipe.silence?.refresh();
      else pipe.stream.destroy();
    });
  }, SILENT_MS);
}

/** Returns why the TMPDIR of a run could not be removed. */
async function removed({ path }: RunDirectory, launch: Launch): Promise<string | undefined> {
  if (launch.owner === undefined && removeSmallDirectory(path, filesOf(launch))) return undefined;
  return removeRunDirectory(path).then(
    () => undefined,
    (error: Error) => error.message,
  );
}

/** Returns the names of the files that were written to the TMPDIR of a run. */
function filesOf({ harness, files }: Launch): string[] {
  return [
    ...(harness ? [] : [STDIN]),
    ...(files ? ['state.json'] : []),
    ...(files?.config ? ['config.json'] : []),
  ];
}

/** Forgets a run that has exited and whose pipes are closed. */
function forget(run: number): void {
  const started = runs.get(run);
  if (started?.hasExited && [...started.pipes.values()].every(({ stream }) => stream.destroyed))
    runs.delete(run);
}
