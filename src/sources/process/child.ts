/** Runs a program in a child process with its own process group, which is killed when the server process ends. */
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { ProcessMark } from '../../model/job.ts';
import type { Logger } from '../../observe/log.ts';
import type { RunAs } from './environment.ts';
import { compileCache, type Launched, launch } from './launch.ts';
import type { Launch } from './launcher-messages.ts';
import { readLines } from './lines.ts';
import type { StateLeft } from './run-files.ts';
import { followStderr, type Listener } from './stderr.ts';

const KILL_GRACE_MS = 10_000;
/** Maximum size of the result, which consists mainly of the state for the next run. */
const MAX_RESULT_BYTES = 1 << 20;
/**
 * How long to read the log and the result after the process group is gone. Only a process that has left the group can
 * still hold these pipes open. The launcher closes the pipe of the records.
 */
const DRAIN_MS = 1_000;

export interface ChildInput
  extends Pick<Launch, 'argv' | 'environment' | 'directory' | 'files' | 'stdin' | 'harness'>,
    Partial<Pick<Launch, 'runEnvironment' | 'preparable'>> {
  temporaryPrefix: string;
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
  /** What a foreign program has left in its state file. Undefined if it is unchanged, or the exit code was not 0. */
  state: StateLeft | undefined;
}

/**
 * Throws an error that explains why the temporary directory is unusable, for example because it is full or missing.
 * Throws any other error unchanged.
 */
function refused(cause: unknown): never {
  const { code, path } = cause as NodeJS.ErrnoException;
  const isElsewhere = path !== undefined && !path.startsWith(tmpdir());
  const why = {
    ENOENT: 'does not exist. Create it',
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

/** @throws Error that says why the program could not be started */
export async function startChild(input: ChildInput): Promise<Child> {
  const { argv, environment, directory, files, stdin, harness, runAs, limits } = input;
  let excess: ChildEnd['excess'];
  const launched: Launched = await launch(
    {
      argv,
      // Only the user of the service may read the compile cache, so a child with another user does not get it.
      environment: { ...environment, ...(harness && runAs === undefined ? compileCache() : {}) },
      runEnvironment: input.runEnvironment ?? {},
      preparable: input.preparable ?? false,
      directory,
      temporaryPrefix: join(tmpdir(), input.temporaryPrefix),
      ...(files === undefined ? {} : { files }),
      stdin,
      harness,
      hasChannel: input.channel !== undefined,
      owner: runAs && { uid: runAs.uid, gid: runAs.gid },
      memoryBytes: limits.memoryBytes,
    },
    (usedBytes) => {
      excess = { usedBytes, limitBytes: limits.memoryBytes };
      signal('SIGKILL');
    },
  ).catch(refused);
  const { records, log: stderr, result: resultPipe, channel } = launched.pipes;
  if (channel !== undefined) input.channel?.(channel);
  const lines = readLines(records, limits.outputBytes);
  const log = followStderr(stderr, { secrets: input.secrets, ...input.listener });
  const result = resultPipe === undefined ? undefined : collect(resultPipe);

  let stopped = false;
  let exitedAlready = false;
  let graceTimer: NodeJS.Timeout | undefined;
  function signal(name: 'SIGTERM' | 'SIGKILL'): void {
    stopped = true;
    if (!exitedAlready) launched.signal(name);
    // The child has already ended, so there is only unread output to discard.
    else lines.abandon();
  }
  function stop(): void {
    if (stopped) return;
    signal('SIGTERM');
    if (exitedAlready) return;
    graceTimer = setTimeout(() => signal('SIGKILL'), input.killGraceMs ?? KILL_GRACE_MS);
  }

  async function settle(): Promise<ChildEnd> {
    const { code, signal: signalName } = await launched.exited;
    clearTimeout(graceTimer);
    channel?.destroy();
    exitedAlready = true;
    const stoppedBefore = stopped;
    const { remains, state, unremoved } = await launched.gone;
    if (remains) {
      const { pid } = launched.process;
      input.log.warn({ pid }, 'run.group_remains: a process of the group is still there after SIGKILL');
    }
    if (unremoved !== undefined) {
      input.log.warn({ error: unremoved }, 'run.temporary_remains: the TMPDIR of a run could not be removed');
    }
    lines.writersGone();
    log.hurry();
    if (stopped || code !== 0) lines.abandon();
    await Promise.all([drained(stderr), resultPipe && drained(resultPipe)]);
    await log.over;
    const over = await lines.over;
    return {
      code,
      signal: signalName,
      stopped: stoppedBefore || (code === 0 && over === 'abandoned'),
      excess,
      outputMistake: typeof over === 'object' ? over.mistake : undefined,
      tail: log.tail(),
      result: result?.(),
      state,
    };
  }
  const end = settle();
  // Callers await `end` later. Until then, an error must not count as an unhandled rejection.
  end.catch(() => {
    clearTimeout(graceTimer);
    exitedAlready = true;
    lines.abandon();
  });
  // If the loop was left early or the output is invalid, nobody reads the output anymore, so the child is stopped.
  lines.over.then((over) => {
    if (over !== 'all') stop();
  });

  return {
    process: launched.process,
    batches: lines.batches,
    bytes: lines.bytes,
    end,
    stop,
    kill: () => signal('SIGKILL'),
  };
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
