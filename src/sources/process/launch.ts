/** The server's side of the launcher: starts it for the first run, and ends it after a minute without runs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Duplex } from 'node:stream';
import type { ProcessMark } from '../../model/job.ts';
import { commandOf } from '../../std/own-files.ts';
import { groupGone, signalGroup } from './groups.ts';
import {
  type FromLauncher,
  type Gone,
  type Launch,
  PIPES,
  type Pipe,
  type ToLauncher,
} from './launcher-messages.ts';
import { removeRunDirectory } from './run-files.ts';

/** How long the launcher is kept without runs. It takes 55 MB (12 MB of its own), and 40 ms of processor time to start. */
const IDLE_MS = 60_000;
/** A launcher that has not responded after this time hangs, and is killed. Starting a process takes milliseconds. */
const RESPONSE_MS = 30_000;
/** Processed bytes are reported to the launcher in steps of this size. */
const STEP_BYTES = 64 << 10;

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process that the launcher has started. */
export interface Launched {
  process: ProcessMark;
  pipes: Pipes;
  /** Resolves when the leader of the group has exited. Rejects if the launcher has died. */
  exited: Promise<Exit>;
  /** Resolves when the group is gone and its TMPDIR has been removed. Rejects if the launcher has died. */
  gone: Promise<Gone>;
  /** Sends a signal to the group. Does nothing once the leader has exited. */
  signal(name: 'SIGTERM' | 'SIGKILL'): void;
}

/** `result` is missing for a foreign program, and `channel` for a program without a channel. */
type Pipes = Record<'records' | 'log', Duplex> & Partial<Record<'result' | 'channel', Duplex>>;

/**
 * Starts a process.
 *
 * @param onExcess called with the bytes used by a group that was killed because of `memoryBytes`
 * @throws Error that says why the process could not be started, with the code and the path of a failed system call
 */
export async function launch(what: Launch, onExcess: (bytes: number) => void): Promise<Launched> {
  connection ??= new Connection();
  return connection.launch(what, onExcess);
}

/**
 * Returns the environment variable that passes the compile cache of this process, if there is one, to our own programs.
 * The variable is needed because a program that turns on the cache itself is too late for its own first file. When run
 * from source, that file alone would make Node load its type stripping, which takes half of the processor time of a
 * module with one record (124 ms instead of 63 ms).
 */
export function compileCache(): { NODE_COMPILE_CACHE?: string } {
  // `getCompileCacheDir` returns a subdirectory for this user and version. The variable needs the parent directory.
  const used = getCompileCacheDir();
  return used === undefined ? {} : { NODE_COMPILE_CACHE: dirname(used) };
}

/** The launcher of this process, if it runs. */
let connection: Connection | undefined;

interface Run {
  started: PromiseWithResolvers<Launched>;
  exited: PromiseWithResolvers<Exit>;
  gone: PromiseWithResolvers<Gone>;
  pipes: Map<Pipe, Relay>;
  onExcess(bytes: number): void;
  /** The process group, until its leader has exited. */
  groupId?: number;
  /** Runs until the launcher has started or refused the process. */
  response: NodeJS.Timeout;
  /** The directory of the run, until it has been removed. */
  directory?: string;
}

class Connection {
  readonly #launcher: ChildProcess;
  readonly #runs = new Map<number, Run>();
  #last = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor() {
    const [program = '', ...args] = commandOf('launcher');
    this.#launcher = spawn(program, args, {
      cwd: '/',
      env: compileCache(),
      // A terminal sends its signals to the whole group of this process.
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    this.#launcher.on('message', (messages: FromLauncher[]) => {
      for (const message of messages) this.#receive(message);
    });
    this.#launcher.once('disconnect', () => this.#lost('The process that starts runs has ended'));
    this.#launcher.once('error', (error) => this.#lost(error.message));
  }

  launch(what: Launch, onExcess: (bytes: number) => void): Promise<Launched> {
    const run = ++this.#last;
    const names = PIPES.filter((name) =>
      name === 'channel' ? what.hasChannel : name !== 'result' || what.harness,
    );
    const pipeOf = (pipe: Pipe) => new Relay((news) => this.#tell({ run, pipe, ...news }));
    const entry: Run = {
      started: Promise.withResolvers(),
      exited: Promise.withResolvers(),
      gone: Promise.withResolvers(),
      pipes: new Map(names.map((name) => [name, pipeOf(name)])),
      onExcess,
      response: setTimeout(() => this.#killSilent(run), RESPONSE_MS).unref(),
    };
    // Callers await these later. Until then, an error must not count as an unhandled rejection.
    for (const { promise } of [entry.exited, entry.gone]) promise.catch(() => {});
    this.#runs.set(run, entry);
    clearTimeout(this.#idle);
    this.#launcher.ref();
    this.#launcher.channel?.ref();
    this.#tell({ run, launch: what });
    return entry.started.promise;
  }

  #tell(message: ToLauncher): void {
    // An error means that the launcher has died. The event `disconnect` follows.
    if (this.#launcher.connected) this.#launcher.send(message, undefined, undefined, () => {});
  }

  #receive(message: FromLauncher): void {
    const { run } = message;
    const entry = this.#runs.get(run);
    if (entry === undefined) return;
    if ('data' in message) entry.pipes.get(message.pipe)?.arrive(message.data);
    else if ('pipe' in message) {
      entry.pipes.get(message.pipe)?.push(null);
      entry.pipes.delete(message.pipe);
    } else if ('started' in message) {
      clearTimeout(entry.response);
      entry.groupId = message.started.pid;
      entry.directory = message.directory;
      entry.started.resolve(this.#launched(run, entry, message.started));
    } else if ('refused' in message) {
      clearTimeout(entry.response);
      const { message: sentence, ...cause } = message.refused;
      entry.started.reject(Object.assign(new Error(sentence), cause));
      this.#forget(run);
    } else if ('exited' in message) {
      delete entry.groupId;
      entry.exited.resolve(message.exited);
    } else if ('gone' in message) {
      delete entry.directory;
      entry.gone.resolve(message.gone);
    } else entry.onExcess(message.excessBytes);
    if (entry.pipes.size === 0 && entry.groupId === undefined && entry.directory === undefined)
      this.#forget(run);
  }

  #launched(run: number, { pipes, exited, gone }: Run, process: ProcessMark): Launched {
    return {
      process,
      pipes: Object.fromEntries(pipes) as Partial<Pipes> as Pipes,
      exited: exited.promise,
      gone: gone.promise,
      signal: (signal) => this.#tell({ run, signal }),
    };
  }

  #killSilent(run: number): void {
    // A response that has arrived while this process did not run is read before the callback.
    setImmediate(() => {
      const entry = this.#runs.get(run);
      if (entry !== undefined && entry.groupId === undefined && entry.directory === undefined)
        this.#launcher.kill('SIGKILL');
    });
  }

  #forget(run: number): void {
    this.#runs.delete(run);
    if (this.#runs.size > 0) return;
    // Without runs, the launcher does not keep this process alive. It ends with the connection.
    this.#launcher.unref();
    this.#launcher.channel?.unref();
    this.#idle = setTimeout(() => this.#close(), IDLE_MS).unref();
  }

  #close(): void {
    if (connection === this) connection = undefined;
    if (this.#launcher.connected) this.#launcher.disconnect();
  }

  /** Kills the groups of all runs, whose ends nobody will report. */
  #lost(sentence: string): void {
    clearTimeout(this.#idle);
    if (connection === this) connection = undefined;
    for (const [run, entry] of this.#runs) {
      this.#runs.delete(run);
      clearTimeout(entry.response);
      void this.#kill(entry).finally(() => {
        for (const { reject } of [entry.started, entry.exited, entry.gone]) reject(new Error(sentence));
        for (const pipe of entry.pipes.values()) pipe.destroy();
      });
    }
  }

  async #kill({ groupId, directory }: Run): Promise<void> {
    if (groupId !== undefined) {
      signalGroup(groupId, 'SIGKILL');
      await groupGone(groupId);
    }
    // What cannot be removed stays, as after the end of any other run.
    if (directory !== undefined) await removeRunDirectory(directory).catch(() => {});
  }
}

type PipeNews = { took: number } | { data: Buffer } | { closed: true };

/** The server's end of a pipe that the launcher relays. */
class Relay extends Duplex {
  readonly #tell: (news: PipeNews) => void;
  /** Processed bytes that were not yet reported to the launcher. */
  #unreported = 0;

  constructor(tell: (news: PipeNews) => void) {
    super({ readableHighWaterMark: STEP_BYTES });
    this.#tell = tell;
    // Otherwise the event `close` would wait until the writable side has ended too.
    this.once('end', () => this.destroy());
  }

  arrive(data: Uint8Array): void {
    this.#unreported += data.length;
    this.push(data);
  }

  override _read(): void {
    if (this.#unreported < STEP_BYTES) return;
    this.#tell({ took: this.#unreported });
    this.#unreported = 0;
  }

  override _write(data: Buffer, _encoding: string, done: () => void): void {
    this.#tell({ data });
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.readableEnded) this.#tell({ closed: true });
    done(error);
  }
}
