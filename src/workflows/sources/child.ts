/**
 * One child process in its own process group, which ends when the server does.
 *
 *     server ──spawns──▶ /bin/sh (leads the group) ──exec──▶ the program ──▶ its own children
 *        │                   └──▶ watcher (same group, nobody's child)           (same group)
 *        └───────pipe────────────────▲  at its end: kill -KILL 0, the whole group
 *
 * The pipe closes when the server ends, however it ends. A disconnect message would be ignored by foreign
 * programs, and the kernel's parent-death signal spares grandchildren. A program that starts a session of its
 * own (`setsid`) leaves the group and escapes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex, Readable, Writable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { ProcessMark } from '../../model/job.ts';
import type { Logger } from '../../observe/log.ts';
import { readLines } from './lines.ts';
import { watchMemory } from './memory-watch.ts';
import { groupGone, markOf, signalGroup } from './process-mark.ts';
import { followStderr, type Listener } from './stderr.ts';

/** In its TMPDIR. */
const STDIN = 'stdin.json';
const KILL_GRACE_MS = 10_000;
/** A result is small: the state that a module leaves for its next run. */
const MAX_RESULT_BYTES = 1 << 20;
/**
 * When the machine runs out of memory, the kernel shall choose a run before the server. More than this makes it
 * choose runs that are not at fault.
 */
const OOM_SCORE_ADJ = 300;
/** What a group that is gone has written is in the pipes already; only one that escaped still holds them. */
const DRAIN_MS = 1_000;

/**
 * The watcher ignores every signal that a group may be sent politely, holds none of the program's pipes, and is
 * orphaned by the second pair of brackets, so that a program that waits for all of its children does not wait
 * for it. It writes a line when it is ready.
 */
const WATCHER = `: "$( (
  trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2
  echo >&3
  exec <&3 >/dev/null 2>&1 3<&- 4<&- 5<&-
  read -r _
  kill -KILL 0
) & )"`;
const EXPENDABLE = `[ -w /proc/self/oom_score_adj ] && echo ${OOM_SCORE_ADJ} 2>/dev/null >/proc/self/oom_score_adj`;
/** Standard output is the records. */
const PLAIN = `${WATCHER}\n${EXPENDABLE}\nexec 3<&-\ninput=$1\nshift\nexec "$@" <"$input"`;
/** Records go out by descriptor 3, a result by 4; standard output is one with the log. */
const HARNESS = `${WATCHER}\n${EXPENDABLE}\nexec 3>&1 1>&2\nexec "$@"`;

/**
 * Our own programs and what they import are kept compiled: outside of TMPDIR, which does not outlive them. The
 * environment says so, and not the program, because this must hold of its first file too: run from source, that one alone
 * made Node load what strips types, half of the processor time of a module with one record (124 ms instead of 63).
 */
const COMPILED = { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') };

/** What is started: the program by its full path, its arguments, and all of its environment but for TMPDIR. */
export interface Launch {
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
}

export interface ChildInput {
  /** Its working directory, by its full path. */
  directory: string;
  temporaryPrefix: string;
  /** Says what to start, and may put files into its TMPDIR before: a new empty directory, removed afterwards. */
  launch(temporary: string): Launch | Promise<Launch>;
  /** Looks at what it has left in TMPDIR, once its whole group is gone. */
  collect?(temporary: string): Promise<void>;
  /**
   * What it reads from standard input. A foreign program finds a file there: Node's pipes are sockets, and bash takes
   * a socket for a remote shell, for which it reads the user's start-up files (measured: 100 ms).
   */
  stdin: string;
  /** Whether it is our own program: it writes records to descriptor 3 and a result to 4. */
  harness: boolean;
  /** Takes the other end of its descriptor 5, by which our own program can ask for something. */
  channel?(end: Duplex): void;
  limits: { memoryBytes: number; outputBytes: number };
  secrets: ReadonlyMap<string, string>;
  listener: Listener;
  log: Logger;
  killGraceMs?: number;
}

export interface Child {
  process: ProcessMark;
  /** The lines of the output. Not reading stops the child; leaving the loop early stops it for good. */
  batches: AsyncIterable<string[]>;
  /** Bytes of output that have been read so far. */
  bytes(): number;
  /** Resolves when the whole group is gone and, unless the run failed, its output has been read. */
  end: Promise<ChildEnd>;
  /** SIGTERM to the group, and SIGKILL after the grace. */
  stop(): void;
  /** SIGKILL to the group. */
  kill(): void;
}

export interface ChildEnd {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Whether it was ended by `stop` or `kill`, or its output was not read to the end. */
  stopped: boolean;
  /** Set when it was killed for the memory that all of its processes held together. */
  excess: { usedBytes: number; limitBytes: number } | undefined;
  /** What was wrong with its output. */
  outputMistake: string | undefined;
  /** The last lines of its standard error. */
  tail: string;
  /** What our own program left on its result pipe; nothing when that is too long. */
  result: string | undefined;
}

/** Starts a program. Rejects with a sentence when it cannot be started. */
export async function startChild(input: ChildInput): Promise<Child> {
  const temporary = await mkdtemp(join(tmpdir(), input.temporaryPrefix)).catch(refused);
  try {
    return await startIn(temporary, await input.launch(temporary), input);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    return refused(error);
  }
}

/** What a full or read-only temporary directory is told as; everything else as it is. */
function refused(cause: unknown): never {
  const { code, path } = cause as NodeJS.ErrnoException;
  const isElsewhere = path !== undefined && !path.startsWith(tmpdir());
  const why = {
    ENOSPC: 'is full: free space (or inodes) there',
    EDQUOT: 'takes no more, because a quota is used up: free space there',
    EROFS: 'is read-only: make it writable',
    EACCES: 'may not be written to: allow it',
  }[code ?? ''];
  if (why === undefined || isElsewhere) throw cause;
  throw new Error(
    `The temporary directory ${tmpdir()} ${why}, or name another one with TMPDIR. A run needs a directory of its own there`,
    { cause },
  );
}

async function startIn(temporary: string, launch: Launch, input: ChildInput): Promise<Child> {
  if (!input.harness) await writeFile(join(temporary, STDIN), input.stdin, { mode: 0o600 });
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
  // A child that ends early breaks these pipes; its exit says all there is to say.
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
    // It ended by itself, and what it has written is not wanted any longer.
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
    // The watcher is still in the group, so its number cannot belong to anybody else yet.
    signalGroup(pid, 'SIGKILL');
    exitedAlready = true;
    const stoppedBefore = stopped;
    if (!(await groupGone(pid))) {
      input.log.warn({ pid }, 'run.group_remains: SIGKILL was sent, yet a process of the group is there');
    }
    lines.writersGone();
    log.hurry();
    if (stopped || code !== 0) lines.abandon();
    await Promise.all([drained(stderr), resultPipe && drained(resultPipe)]);
    await log.over;
    await input.collect?.(temporary);
    await rm(temporary, { recursive: true, force: true, maxRetries: 3 }).catch((error: Error) => {
      input.log.warn({ error: error.message }, 'run.temporary_remains: its directory could not be removed');
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
  // Whoever waits for the end gets the error; it must not end the server before somebody does.
  end.catch(() => {});
  // Nobody reads on: whether the loop was left or the output was at fault, the child has no more to do.
  lines.over.then((over) => {
    if (over !== 'all') stop();
  });

  // Until the watcher is ready, a signal to the group would end it too, and a run is not safe without it.
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
    const { harness } = input;
    const script = harness ? [HARNESS, 'sh'] : [PLAIN, 'sh', join(temporary, STDIN)];
    const child = spawn('/bin/sh', ['-c', ...script, ...launch.argv], {
      cwd: input.directory,
      env: { ...launch.environment, ...(input.harness ? COMPILED : {}), TMPDIR: temporary },
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

/** Resolves when a stream has ended, or shortly after if somebody who escaped keeps it open. */
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
