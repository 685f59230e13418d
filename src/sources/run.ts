/** Runs one attempt of a job as a child process: its input, its output, and how it ended. */
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
  /** The JSON text of the state that the last published run left. It is never parsed on its way, so numbers stay exact. */
  state: string | null;
  /** All secrets of the team. */
  secrets: ReadonlyMap<string, string>;
  /** The environment of the server. A child inherits only PATH, HOME, LANG, LC_*, TZ and USER from it. */
  environment: ReadonlyMap<string, string>;
  /** The system user that the child runs as (default: the service's own user). */
  runAs: RunAs | undefined;
  log: Logger;
  /** The addresses that modules and HTTP sources may connect to (default: public addresses only). */
  fetchPolicy?: AddressPolicy;
  /**
   * Called for each line of the run's log. Secrets in the line are already masked. The function must be fast and must
   * not throw.
   */
  onLog(line: { level: LogLevel; text: string }): void;
  /** Called with the progress that the source reports. */
  onProgress(said: { pages?: number; message?: string }): void;
  /** Time between SIGTERM and SIGKILL (default: 10 s). */
  killGraceMs?: number;
}

export interface Run {
  process: ProcessMark;
  /**
   * Batches of at most 2,000 lines or about 1 MiB. Each line is the JSON text of one record. Read the batches to the end
   * before awaiting `end`, because the child blocks while nobody reads. Leaving the loop early stops the run.
   */
  batches: AsyncIterable<string[]>;
  /** Bytes of output read so far. */
  readonly bytes: number;
  /** Resolves when the whole process group is gone and its temporary directory has been removed. Never rejects. */
  end: Promise<RunEnd>;
  /** Sends SIGTERM to the process group, and SIGKILL after the grace period. May be called more than once. */
  stop(): void;
  /** Sends SIGKILL to the process group. */
  kill(): void;
}

/**
 * How a run ended. `state` is JSON text, and undefined if the run did not change its state. `unchanged` means that the source reported
 * no changes, so missing records are kept. `error` is shown to users.
 */
export type RunEnd =
  | { ok: true; state: string | undefined; unchanged?: boolean }
  | { ok: false; reason: 'error' | 'source' | 'output' | 'memory'; error: string };

/** Returns the options of a child process that all types of sources share. */
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

/**
 * Turns a child process into a run.
 *
 * @param whenDone returns the result after exit code 0; any other exit is a failure for all types of sources
 */
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

/** Returns why a child failed. Undefined if its exit code was 0. */
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
      `${who} was killed (SIGKILL), but not by Flowhook. The operating system often does this when memory runs out`,
      end,
    );
  }
  if (end.signal !== null) return failed(`${who} was terminated by the signal ${end.signal}`, end);
  if (end.code !== 0) return failed(`${who} ended with exit code ${end.code}`, end);
  return undefined;
}

/** Returns a failure. Its message ends with the last lines that the child wrote to standard error. */
export function failed(sentence: string, end: ChildEnd): RunEnd {
  const words =
    end.tail === '' ? 'It wrote nothing to standard error' : `The end of its standard error:\n${end.tail}`;
  return { ok: false, reason: 'error', error: `${sentence}. ${words}` };
}

/** The per-host request limits that all jobs of this process share. */
const turns = createHostTurns();

/**
 * Returns a function that serves the per-host limits of a team to a child over its channel.
 *
 * @param options.bindsOthers false for a child that runs code of the team, because such a child may write anything to
 *   its channel
 */
export function shareTurns(team: string, options: { bindsOthers: boolean }): (channel: Duplex) => void {
  return (channel) => serveTurns(channel, turns.of(team, options));
}
