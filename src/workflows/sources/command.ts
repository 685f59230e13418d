/** A command: any program whose standard output is one JSON object a line. */
import { resolve } from 'node:path';
import type { Source } from '../../model/workflow.ts';
import { type Child, type ChildEnd, startChild } from './child.ts';
import {
  cleanEnvironment,
  findProgram,
  requireDirectory,
  runEnvironment,
  withSecrets,
} from './environment.ts';
import { temporaryPrefix } from './leftover.ts';
import type { Run, RunEnd, RunInput } from './run.ts';

/** Starts the program, without a shell, in the directory of its definition. */
export async function startCommand(
  input: RunInput,
  source: Extract<Source, { type: 'command' }>,
): Promise<Run> {
  const directory = resolve(input.workflowsDirectory, source.directory);
  await requireDirectory(directory);
  const environment: Record<string, string> = {
    ...cleanEnvironment(input.environment),
    ...withSecrets(source.env, input),
    ...runEnvironment(input),
  };
  const [name = '', ...rest] = source.command;
  const program = await findProgram(name, { directory, path: environment.PATH ?? '' });
  const child = await startChild({
    argv: [program, ...rest],
    directory,
    environment,
    temporaryPrefix: temporaryPrefix(input),
    secrets: input.secrets,
    log: input.log,
    ...(input.killGraceMs === undefined ? {} : { killGraceMs: input.killGraceMs }),
  });
  return runOf(child, `The command ${name}`, () => ({ ok: true, state: undefined }));
}

/** Makes a run of a child: what its end means is the same for every kind, but for what an exit code 0 is worth. */
export function runOf(child: Child, who: string, whenDone: (end: ChildEnd) => RunEnd): Run {
  return {
    process: child.process,
    batches: child.batches,
    end: child.end.then(
      (end): RunEnd => failureOf(end, who) ?? whenDone(end),
      (error: Error): RunEnd => ({ ok: false, reason: 'error', error: `${who} was lost: ${error.message}` }),
    ),
    stop: child.stop,
    kill: child.kill,
  };
}

/** Says why a child failed, or nothing if it ended well. */
function failureOf(end: ChildEnd, who: string): RunEnd | undefined {
  if (end.outputMistake !== undefined) return { ok: false, reason: 'output', error: end.outputMistake };
  if (end.stopped) return failed(`${who} was stopped before it had finished`, end);
  if (end.signal === 'SIGKILL') {
    return failed(
      `${who} was killed (SIGKILL) by somebody else: often the system, when memory runs out`,
      end,
    );
  }
  if (end.signal !== null) return failed(`${who} was ended by the signal ${end.signal}`, end);
  if (end.code !== 0) return failed(`${who} ended with exit code ${end.code}`, end);
  return undefined;
}

/** A failure whose sentence is followed by what the child had to say. */
export function failed(sentence: string, end: ChildEnd): RunEnd {
  const words =
    end.tail === '' ? 'It wrote nothing to standard error' : `The end of its standard error:\n${end.tail}`;
  return { ok: false, reason: 'error', error: `${sentence}. ${words}` };
}
