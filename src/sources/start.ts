/** Starts one attempt of a job in a child process. How it starts depends on the type of the source. */
import type { Source } from '../model/workflow.ts';
import { startHttp } from './http/start.ts';
import { startCommand } from './process/command.ts';
import { startModule } from './process/module.ts';
import type { Run, RunInput } from './run.ts';

/** @throws Error if the run cannot start, for example because a program, a secret or a directory is missing */
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
      // This happens if the definition had a source of another type when the job was queued.
      throw new Error('This workflow now receives its records by push, so there is nothing to run');
  }
}

/** Returns the name of a source for log lines, such as `the command ./people.sh`. */
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
