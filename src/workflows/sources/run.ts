/** Starts one attempt of a job: the kind of its source decides which child process that is. */
import type { LogLevel, ProcessMark } from '../../model/job.ts';
import type { Definition, Source } from '../../model/workflow.ts';
import type { AddressPolicy } from '../../net/address-policy.ts';
import type { Logger } from '../../observe/log.ts';
import { startCommand } from './command.ts';
import { startHttp } from './http/start.ts';
import { startModule } from './module.ts';

export interface RunInput {
  workflowsDirectory: string;
  definition: Definition;
  /** The team's slug. */
  team: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  /** What the last published run left. */
  state: unknown;
  /** All of the team's. */
  secrets: ReadonlyMap<string, string>;
  /** The server's own environment: a child gets PATH, HOME, LANG, LC_*, TZ and USER of it. */
  environment: ReadonlyMap<string, string>;
  log: Logger;
  /** Which addresses `ctx.fetch` may connect to; only public ones unless told. */
  fetchPolicy?: AddressPolicy;
  /** Told of each line of the run's log, secrets masked, in order; it must be quick and never throw. */
  onLog(line: { level: LogLevel; text: string }): void;
  /** Told what the source says of its progress. */
  onProgress(said: { pages?: number; message?: string }): void;
  /** Between SIGTERM and SIGKILL; 10 s unless told. */
  killGraceMs?: number;
}

export interface Run {
  process: ProcessMark;
  /**
   * Lines, each one record's JSON text, at most 500 or about 1 MiB a batch. To be read to the end before `end`
   * is awaited; not reading stops the child, and leaving the loop early ends the run.
   */
  batches: AsyncIterable<string[]>;
  /** Bytes of output read so far. */
  readonly bytes: number;
  /** Resolves when the whole process group is gone and its temporary directory is removed. Never rejects. */
  end: Promise<RunEnd>;
  /** SIGTERM to the group, and SIGKILL after the grace. Calling it twice is harmless. */
  stop(): void;
  /** SIGKILL to the group. */
  kill(): void;
}

/**
 * How a run ended. `state` is undefined when it is unchanged; `unchanged` says that the source has nothing new, so
 * that what it did not bring is not gone; `error` is a sentence for people.
 */
export type RunEnd =
  | { ok: true; state: unknown; unchanged?: boolean }
  | { ok: false; reason: 'error' | 'source' | 'guard' | 'output' | 'memory'; error: string };

/** Starts a run. Rejects with a sentence when it cannot start: no such program, a missing secret or directory. */
export function startRun(input: RunInput): Promise<Run> {
  const { source } = input.definition;
  switch (source.type) {
    case 'command':
      return startCommand(input, source);
    case 'module':
      return startModule(input, source);
    case 'http':
      return startHttp(input, source);
    case 'push':
      // It was queued while its definition still named another source.
      throw new Error('This workflow receives its records by push now: there is nothing to run');
  }
}

/** How a run's log calls its source: `the command ./people.sh`. */
export function sourceName(source: Source): string {
  switch (source.type) {
    case 'command':
      return `the command ${source.command[0]}`;
    case 'module':
      return `the module ${source.file}`;
    case 'http':
      return `the HTTP source ${source.urls[0]}`;
    case 'push':
      return 'a push';
  }
}
