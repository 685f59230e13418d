/**
 * Runs a program in a child process with its own process group, which is killed when the server process ends.
 *
 *     server ──spawns──▶ /bin/sh (leads the group) ──exec──▶ the program ──▶ its own children
 *        │                   └──▶ watcher (same group, orphaned)                 (same group)
 *        └───────pipe────────────────▲  when the pipe closes: kill -KILL 0, the whole group
 *
 * The pipe closes however the server ends. Foreign programs would ignore a disconnect message, and the kernel's
 * parent-death signal does not reach grandchildren. A program that starts its own session (`setsid`) leaves the group and
 * escapes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { ProcessMark } from '../../model/job.ts';
import type { Logger } from '../../observe/log.ts';
import type { RunAs } from './environment.ts';
import { groupGone, markOf, signalGroup, watchMemory } from './groups.ts';
import { readLines } from './lines.ts';
import { handOver, makeRunDirectory, type RunDirectory, removeRunDirectory } from './run-files.ts';
import { followStderr, type Listener } from './stderr.ts';

/** The name of the file in TMPDIR that becomes the standard input of a foreign program. */
const STDIN = 'stdin.json';
const KILL_GRACE_MS = 10_000;
/** Maximum size of the result, which consists mainly of the state for the next run. */
const MAX_RESULT_BYTES = 1 << 20;
/**
 * The `oom_score_adj` of a run. When the machine runs out of memory, the kernel should kill a run rather
 * than the server. With a higher value, the kernel would also kill runs that are not the cause.
 */
const OOM_SCORE_ADJ = 300;
/**
 * How long to read a pipe after the process group is gone. Only a process that has left the group can still hold the
 * pipe open.
 */
const DRAIN_MS = 1_000;

/**
 * Starts the watcher. It ignores all signals that ask a group to end, and holds none of the program's pipes. The second
 * pair of parentheses makes the watcher an orphan, so that a program that waits for all of its children does not wait
 * for the watcher. The watcher writes a line when it is ready.
 */
const WATCHER = `: "$( (
  trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2
  echo >&3
  exec <&3 >/dev/null 2>&1 3<&- 4<&- 5<&-
  read -r _
  kill -KILL 0
) & )"`;
const EXPENDABLE = `[ -w /proc/self/oom_score_adj ] && echo ${OOM_SCORE_ADJ} 2>/dev/null >/proc/self/oom_score_adj`;
/** The script for foreign programs, which write records to standard output. */
const PLAIN = `${WATCHER}\n${EXPENDABLE}\nexec 3<&-\ninput=$1\nshift\nexec "$@" <"$input"`;
/**
 * The script for our own programs, which write records to descriptor 3, the result to descriptor 4, and log lines to
 * standard output.
 */
const HARNESS = `${WATCHER}\n${EXPENDABLE}\nexec 3>&1 1>&2\nexec "$@"`;

/**
 * Passes the compile cache of this process, if there is one, to our own programs. The environment variable is needed
 * because a program that turns on the cache itself is too late for its own first file. When run from source, that file
 * alone would make Node load its type stripping, which takes half of the processor time of a module with one record
 * (124 ms instead of 63 ms).
 */
function compileCache(): { NODE_COMPILE_CACHE?: string } {
  // `getCompileCacheDir` returns a subdirectory for this user and version. The variable needs the parent directory.
  const used = getCompileCacheDir();
  return used === undefined ? {} : { NODE_COMPILE_CACHE: dirname(used) };
}

/** What to start: the absolute path of the program and its arguments, and its whole environment except TMPDIR. */
interface Launch {
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
}

export interface ChildInput {
  /** The absolute path of the child's working directory. */
  directory: string;
  temporaryPrefix: string;
  /** Returns what to start. It may first write files to TMPDIR, a new directory that is removed when the run ends. */
  launch(temporary: string): Launch | Promise<Launch>;
  /** Called with TMPDIR once the whole process group is gone. */
  collect?(temporary: string): Promise<void>;
  /**
   * The content of standard input. A foreign program gets a file, because the pipes that Node makes are sockets. Bash
   * mistakes a socket for a remote shell, for which it reads the startup files of the user (measured: 100 ms).
   */
  stdin: string;
  /** Whether this is our own program, which writes records to descriptor 3 and its result to descriptor 4. */
  harness: boolean;
  /** Receives the server's end of descriptor 5, which our own program uses to send requests to the server. */
  channel?(end: Duplex): void;
  /** The system user that the program runs as (default: the service's own user). */
  runAs: RunAs | undefined;
  limits: { memoryBytes: number; outputBytes: number };
  secrets: ReadonlyMap<string, string>;
  listener: Listener;
  log: Logger;
  killGraceMs?: number;
}

export interface Child {
  process: ProcessMark;
  /** The lines of the output. The child blocks while nobody reads them. Leaving the loop early stops the child. */
  batches: AsyncIterable<string[]>;
  /** Bytes of output read so far. */
  bytes(): number;
  /** Resolves when the whole process group is gone. Unless the run failed, its output has then been read. */
  end: Promise<ChildEnd>;
  /** See `Run`. */
  stop(): void;
  kill(): void;
}

export interface ChildEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Whether `stop` or `kill` ended the child, or the output was not read to its end. */
  stopped: boolean;
  /** The memory that was used, and the limit, if the child was killed because it exceeded `memoryBytes`. */
  excess: { usedBytes: number; limitBytes: number } | undefined;
  /** What was wrong with the output. */
  outputMistake: string | undefined;
  /** The last lines of standard error. */
  tail: string;
  /**
   * What our own program wrote to descriptor 4. Empty if it wrote nothing, and undefined if it wrote more than 1 MiB.
   */
  result: string | undefined;
}

/** @throws Error that says why the program could not be started */
export async function startChild(input: ChildInput): Promise<Child> {
  const directory = await makeRunDirectory(input.temporaryPrefix, input.runAs).catch(refused);
  try {
    return await startIn(directory, await input.launch(directory.temporary), input);
  } catch (error) {
    await removeRunDirectory(directory.path);
    return refused(error);
  }
}

/**
 * Throws an error that explains why the temporary directory is unusable, for example because it is full or read-only.
 * Throws any other error unchanged.
 */
function refused(cause: unknown): never {
  const { code, path } = cause as NodeJS.ErrnoException;
  const isElsewhere = path !== undefined && !path.startsWith(tmpdir());
  const why = {
    ENOSPC: 'is full. Free space (or inodes) there',
    EDQUOT: 'is full because of a quota. Free space there',
    EROFS: 'is read-only. Make it writable',
    EACCES: 'is not writable for this user. Change its permissions',
  }[code ?? ''];
  if (why === undefined || isElsewhere) throw cause;
  throw new Error(
    `The temporary directory ${tmpdir()} ${why}, or set TMPDIR to another directory. Each run needs a temporary directory`,
    { cause },
  );
}

async function startIn(directory: RunDirectory, launch: Launch, input: ChildInput): Promise<Child> {
  const { temporary } = directory;
  if (!input.harness) await writeFile(join(temporary, STDIN), input.stdin, { mode: 0o600 });
  await handOver(directory, input.runAs);
  const { child, pid } = await spawnShell(temporary, launch, input);
  const marking = markOf(pid);
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const [stdin, stdout, stderr, watch, resultPipe, channel] = child.stdio as unknown as [
    Writable | null,
    Readable,
    Readable,
    Duplex,
    Duplex | undefined,
    Duplex | undefined,
  ];
  // These pipes break if the child ends early. The error is ignored, because the exit of the child is reported instead.
  for (const pipe of [stdin, watch, resultPipe, channel]) pipe?.on('error', () => {});
  stdin?.end(input.stdin);
  if (channel !== undefined) input.channel?.(channel);
  const lines = readLines(stdout, input.limits.outputBytes);
  const log = followStderr(stderr, { secrets: input.secrets, ...input.listener });
  const result = resultPipe === undefined ? undefined : collect(resultPipe);

  let stopped = false;
  let exitedAlready = false;
  let graceTimer: NodeJS.Timeout | undefined;
  function signal(name: NodeJS.Signals): void {
    stopped = true;
    if (!exitedAlready) signalGroup(pid, name);
    // The child has already ended, so there is only unread output to discard.
    else lines.abandon();
  }
  function stop(): void {
    if (stopped) return;
    signal('SIGTERM');
    if (exitedAlready) return;
    graceTimer = setTimeout(() => signal('SIGKILL'), input.killGraceMs ?? KILL_GRACE_MS);
  }

  let excess: ChildEnd['excess'];
  const unwatch = watchMemory({
    groupId: pid,
    limitBytes: input.limits.memoryBytes,
    onExcess(usedBytes) {
      excess = { usedBytes, limitBytes: input.limits.memoryBytes };
      signal('SIGKILL');
    },
  });

  async function settle(): Promise<ChildEnd> {
    const [code, signalName] = await exited;
    clearTimeout(graceTimer);
    unwatch();
    stdin?.destroy();
    channel?.destroy();
    // The watcher is still in the process group, so the id of the group cannot have been reused.
    signalGroup(pid, 'SIGKILL');
    exitedAlready = true;
    const stoppedBefore = stopped;
    if (!(await groupGone(pid))) {
      input.log.warn({ pid }, 'run.group_remains: a process of the group is still there after SIGKILL');
    }
    lines.writersGone();
    log.hurry();
    if (stopped || code !== 0) lines.abandon();
    await Promise.all([drained(stderr), resultPipe && drained(resultPipe)]);
    await log.over;
    await input.collect?.(temporary);
    await removeRunDirectory(directory.path).catch((error: Error) => {
      input.log.warn(
        { error: error.message },
        'run.temporary_remains: the TMPDIR of a run could not be removed',
      );
    });
    const over = await lines.over;
    return {
      code,
      signal: signalName,
      stopped: stoppedBefore || (code === 0 && over === 'abandoned'),
      excess,
      outputMistake: typeof over === 'object' ? over.mistake : undefined,
      tail: log.tail(),
      result: result?.(),
    };
  }
  const end = settle();
  // Callers await `end` later. Until then, an error must not count as an unhandled rejection.
  end.catch(() => {});
  // If the loop was left early or the output is invalid, nobody reads the output anymore, so the child is stopped.
  lines.over.then((over) => {
    if (over !== 'all') stop();
  });

  // Waits until the watcher is ready. An earlier signal to the group would end the watcher too, and the run could then
  // outlive the server.
  await Promise.race([once(watch, 'data').catch(() => {}), exited]);
  return {
    process: (await marking) ?? { pid, startedAt: 'ended' },
    batches: lines.batches,
    bytes: lines.bytes,
    end,
    stop,
    kill: () => signal('SIGKILL'),
  };
}

async function spawnShell(temporary: string, launch: Launch, input: ChildInput) {
  try {
    const { harness, runAs } = input;
    const script = harness ? [HARNESS, 'sh'] : [PLAIN, 'sh', join(temporary, STDIN)];
    const child = spawn('/bin/sh', ['-c', ...script, ...launch.argv], {
      cwd: input.directory,
      // Only the user of the service may read the compile cache, so a child with another user does not get it.
      env: {
        ...(runAs === undefined ? {} : { HOME: temporary }),
        ...launch.environment,
        ...(harness && runAs === undefined ? compileCache() : {}),
        TMPDIR: temporary,
      },
      ...(runAs === undefined ? {} : { uid: runAs.uid, gid: runAs.gid }),
      detached: true,
      stdio: [
        harness ? 'pipe' : 'ignore',
        'pipe',
        'pipe',
        'pipe',
        ...(harness ? (['pipe'] as const) : []),
        ...(harness && input.channel !== undefined ? (['pipe'] as const) : []),
      ],
    });
    if (child.pid !== undefined) return { child, pid: child.pid };
    throw (await once(child, 'error'))[0];
  } catch (error) {
    throw new Error(`A child process could not be started: ${(error as Error).message}`, { cause: error });
  }
}

/** Resolves when the stream has ended. If a process outside the group keeps the stream open, resolves after 1 s. */
async function drained(stream: Readable): Promise<void> {
  if (stream.destroyed || stream.readableEnded) return;
  const timeout = new AbortController();
  await Promise.race([
    once(stream, 'close', { signal: timeout.signal }).catch(() => {}),
    wait(DRAIN_MS, undefined, { signal: timeout.signal }).catch(() => {}),
  ]);
  timeout.abort();
  stream.destroy();
}

function collect(stream: Readable): () => string | undefined {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= MAX_RESULT_BYTES) chunks.push(chunk);
  });
  return () => (bytes <= MAX_RESULT_BYTES ? Buffer.concat(chunks).toString() : undefined);
}
