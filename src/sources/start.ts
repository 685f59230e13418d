/** Starts one attempt of a job in the child process for its kind of source: the list of the kinds that run. */
import type { Source } from '../model/workflow.ts';
import { startHttp } from './http/start.ts';
import { startCommand } from './process/command.ts';
import { startModule } from './process/module.ts';
import type { Run, RunInput } from './run.ts';

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
