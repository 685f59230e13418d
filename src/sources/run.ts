/** One attempt of a job as a child process: its input, its output, and how it ended. */
import type { Duplex } from 'node:stream';
import type { LogLevel, ProcessMark } from '../model/job.ts';
import type { Definition } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import { createHostTurns } from '../net/host-turns.ts';
import { serveTurns } from '../net/host-turns-channel.ts';
import type { Logger } from '../observe/log.ts';
import { formatSize } from '../std/amounts.ts';
import type { Child, ChildEnd, ChildInput } from './process/child.ts';
import type { RunAs } from './process/environment.ts';
import { temporaryPrefix } from './process/run-files.ts';

export interface RunInput {
  workflowsDirectory: string;
  definition: Definition;
  /** The team's slug. */
  team: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  /** The state of the last published run. */
  state: unknown;
  /** All secrets of the team. */
  secrets: ReadonlyMap<string, string>;
  /** The server's environment. A child inherits only PATH, HOME, LANG, LC_*, TZ and USER. */
  environment: ReadonlyMap<string, string>;
  /** The system user to run as; undefined: the service's own user. */
  runAs: RunAs | undefined;
  log: Logger;
  /** The addresses that modules and HTTP sources may connect to (default: only public ones). */
  fetchPolicy?: AddressPolicy;
  /** Called for each line of the run's log, with secrets masked. Must be quick and must not throw. */
  onLog(line: { level: LogLevel; text: string }): void;
  /** Called with the progress that the source reports. */
  onProgress(said: { pages?: number; message?: string }): void;
  /** Time between SIGTERM and SIGKILL (default: 10 s). */
  killGraceMs?: number;
}

export interface Run {
  process: ProcessMark;
  /**
   * Lines, each the JSON text of one record, in batches of at most 500 lines or about 1 MiB. Read them to the end before
   * awaiting `end`: the child blocks while nobody reads. Leaving the loop early stops the run.
   */
  batches: AsyncIterable<string[]>;
  /** Bytes of output read so far. */
  readonly bytes: number;
  /** Resolves when the whole process group is gone and its temporary directory is removed. Never rejects. */
  end: Promise<RunEnd>;
  /** Sends SIGTERM to the process group, and SIGKILL after the grace period. May be called twice. */
  stop(): void;
  /** Sends SIGKILL to the process group. */
  kill(): void;
}

/**
 * How a run ended. `state` is undefined if the run did not change it. `unchanged` means that the source reported no
 * changes, so that missing records are kept. `error` is shown to users.
 */
export type RunEnd =
  | { ok: true; state: unknown; unchanged?: boolean }
  | { ok: false; reason: 'error' | 'source' | 'guard' | 'output' | 'memory'; error: string };

/** The options that all kinds of sources share. */
export function childOptions(
  input: RunInput,
): Pick<ChildInput, 'temporaryPrefix' | 'runAs' | 'limits' | 'secrets' | 'listener' | 'log' | 'killGraceMs'> {
  return {
    temporaryPrefix: temporaryPrefix(input),
    runAs: input.runAs,
    limits: input.definition.limits,
    secrets: input.secrets,
    listener: input,
    log: input.log,
    ...(input.killGraceMs === undefined ? {} : { killGraceMs: input.killGraceMs }),
  };
}

/** @param whenDone returns the result after exit code 0; any other end is a failure for all kinds of sources */
export function runOf(child: Child, who: string, whenDone: (end: ChildEnd) => RunEnd): Run {
  return {
    process: child.process,
    batches: child.batches,
    get bytes() {
      return child.bytes();
    },
    end: child.end
      .then((end): RunEnd => failureOf(end, who) ?? whenDone(end))
      .catch((error: Error) => ({ ok: false, reason: 'error', error: `${who} was lost: ${error.message}` })),
    stop: child.stop,
    kill: child.kill,
  };
}

/** Why a child failed; undefined if it exited with 0. */
function failureOf(end: ChildEnd, who: string): RunEnd | undefined {
  if (end.excess !== undefined) {
    const { usedBytes, limitBytes } = end.excess;
    return {
      ok: false,
      reason: 'memory',
      error:
        `${who} and its child processes used ${formatSize(usedBytes)} of memory and were killed: ` +
        `\`limits.memory\` is ${formatSize(limitBytes)}. Raise it if the run needs more`,
    };
  }
  if (end.outputMistake !== undefined) return { ok: false, reason: 'output', error: end.outputMistake };
  if (end.stopped) return failed(`${who} was stopped before it had finished`, end);
  if (end.signal === 'SIGKILL') {
    return failed(
      `${who} was killed (SIGKILL), but not by Flowhook: often the system does this when memory runs out`,
      end,
    );
  }
  if (end.signal !== null) return failed(`${who} was terminated by the signal ${end.signal}`, end);
  if (end.code !== 0) return failed(`${who} ended with exit code ${end.code}`, end);
  return undefined;
}

/** A failure whose message ends with the last lines of the child's standard error. */
export function failed(sentence: string, end: ChildEnd): RunEnd {
  const words =
    end.tail === '' ? 'It wrote nothing to standard error' : `The end of its standard error:\n${end.tail}`;
  return { ok: false, reason: 'error', error: `${sentence}. ${words}` };
}

/** The per-host request limits that all jobs of this process share. */
const turns = createHostTurns();

/**
 * Serves the per-host limits of a team to a child over its channel.
 *
 * @param options.bindsOthers false for a child that runs code of the team, because it may write anything to its channel
 */
export function shareTurns(team: string, options: { bindsOthers: boolean }): (channel: Duplex) => void {
  return (channel) => serveTurns(channel, turns.of(team, options));
}
