/** Starts one attempt of a job in the child process for its kind of source. */
import type { LogLevel, ProcessMark } from '../model/job.ts';
import type { Definition, Source } from '../model/workflow.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { Logger } from '../observe/log.ts';
import { startHttp } from './http/start.ts';
import { startCommand } from './process/command.ts';
import { startModule } from './process/module.ts';
import type { RunAs } from './process/run-as.ts';

export interface RunInput {
  workflowsDirectory: string;
  definition: Definition;
  /** The team's slug. */
  team: string;
  workflowId: string;
  jobId: string;
  attempt: number;
  /** The state that the last published run left. */
  state: unknown;
  /** All secrets of the team. */
  secrets: ReadonlyMap<string, string>;
  /** The server's environment, of which a child inherits PATH, HOME, LANG, LC_*, TZ and USER. */
  environment: ReadonlyMap<string, string>;
  /** The system user that it runs as; undefined: the service's own. */
  runAs: RunAs | undefined;
  log: Logger;
  /** The addresses that modules and HTTP sources may connect to; only public ones by default. */
  fetchPolicy?: AddressPolicy;
  /** Called for each line of the run's log, with secrets masked; must be quick and must not throw. */
  onLog(line: { level: LogLevel; text: string }): void;
  /** Called with the progress that the source reports. */
  onProgress(said: { pages?: number; message?: string }): void;
  /** Time between SIGTERM and SIGKILL; 10 s by default. */
  killGraceMs?: number;
}

export interface Run {
  process: ProcessMark;
  /**
   * Lines, each the JSON text of one record, at most 500 or about 1 MiB a batch. Read them to the end before awaiting
   * `end`: the child blocks while nobody reads. Leaving the loop early ends the run.
   */
  batches: AsyncIterable<string[]>;
  /** Bytes of output read so far. */
  readonly bytes: number;
  /** Resolves when the whole process group is gone and its temporary directory is removed. Never rejects. */
  end: Promise<RunEnd>;
  /** SIGTERM to the group, and SIGKILL after the grace period. May be called twice. */
  stop(): void;
  /** SIGKILL to the group. */
  kill(): void;
}

/**
 * How a run ended. `state` is undefined when the run did not change it. `unchanged` means that the source has nothing
 * new, so records that it did not bring are kept. `error` is a message for people.
 */
export type RunEnd =
  | { ok: true; state: unknown; unchanged?: boolean }
  | { ok: false; reason: 'error' | 'source' | 'guard' | 'output' | 'memory'; error: string };

/** @throws Error when the run cannot start, such as for a missing program, secret or directory */
export async function startRun(input: RunInput): Promise<Run> {
  const { source } = input.definition;
  switch (source.type) {
    case 'command':
      return startCommand(input, source);
    case 'module':
      return startModule(input, source);
    case 'http':
      return startHttp(input, source);
    case 'push':
      // The job was queued while the definition named another source.
      throw new Error('This workflow receives its records by push now: there is nothing to run');
  }
}

/** The name of a source in the log of its run: `the command ./people.sh`. */
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
