/** The messages between the server and the launcher (`launcher.ts`). */
import type { ProcessMark } from '../../model/job.ts';
import type { FileContents, StateLeft } from './run-files.ts';

/** What to start. */
export interface Launch {
  /** The program, which is searched in PATH if it has no slash, and its arguments. `${state}` and `${config}` are replaced with the paths of `files`. */
  argv: readonly string[];
  /** The environment, which is the same for all runs of a kind, and which `runEnvironment` is added to. */
  environment: Readonly<Record<string, string>>;
  /** Environment variables of this run, without TMPDIR, the paths of `files`, and a HOME in TMPDIR if there is none. */
  runEnvironment: Readonly<Record<string, string>>;
  /** The absolute path of the working directory. */
  directory: string;
  /** The absolute path of TMPDIR, a new directory that is removed when the run ends, without its last characters. */
  temporaryPrefix: string;
  /** Files in TMPDIR for a foreign program. */
  files?: FileContents;
  /**
   * The content of standard input. A foreign program gets a file, because the pipes that Node makes are sockets. Bash
   * mistakes a socket for a remote shell, for which it reads the startup files of the user (measured: 100 ms).
   */
  stdin: string;
  /** Whether this is our own program, which writes records to descriptor 3 and its result to descriptor 4. */
  harness: boolean;
  /** Whether a process of our own program may be prepared for the next run of this kind. */
  preparable: boolean;
  /** Whether our own program has a channel to the server, on descriptor 5. */
  hasChannel: boolean;
  /** The system user of the run (default: the service's own user). */
  owner: { uid: number; gid: number } | undefined;
  /** Maximum resident memory of the process group. */
  memoryBytes: number;
}

/** The pipes of a run by the names that messages use. */
export const PIPES = ['records', 'log', 'result', 'channel'] as const;
export type Pipe = (typeof PIPES)[number];

/** A message to the launcher about the run with this number. */
export type ToLauncher = { run: number } & (
  | { launch: Launch }
  | { signal: 'SIGTERM' | 'SIGKILL' }
  /** The server has processed this many bytes of the pipe. */
  | { pipe: Pipe; took: number }
  | { pipe: Pipe; data: Buffer }
  | { pipe: Pipe; closed: true }
);

export type FromLauncher = { run: number } & (
  | { started: ProcessMark; directory: string }
  | { refused: { message: string; code: string | undefined; path: string | undefined } }
  | { pipe: Pipe; data: Uint8Array }
  | { pipe: Pipe; closed: true }
  | { excessBytes: number }
  | { exited: { code: number | null; signal: NodeJS.Signals | null } }
  | { gone: Gone }
);

/** Sent when the whole process group is gone, and TMPDIR has been removed. */
export interface Gone {
  /** Whether a process of the group is still there. */
  remains: boolean;
  state: StateLeft | undefined;
  /** Why TMPDIR could not be removed. */
  unremoved: string | undefined;
}
