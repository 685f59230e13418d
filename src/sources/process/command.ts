/** Starts a command: any program that prints one JSON object per line, or a Singer tap that prints messages. */
import { resolve } from 'node:path';
import type { Source } from '../../model/workflow.ts';
import type { Run, RunInput } from '../run.ts';
import { childOptions, failed, runOf } from '../run.ts';
import { createMask, fillSecrets } from '../secrets.ts';
import { readSinger } from '../singer.ts';
import { startChild } from './child.ts';
import { cleanEnvironment, findProgram, requireDirectory, runEnvironment } from './environment.ts';
import { stateLeft } from './run-files.ts';

/**
 * Starts the program, without a shell, in the directory of its definition. The program gets the state of the last
 * published run on standard input, as one line of JSON (`null` before the first run), and in the file at the path in
 * FLOWHOOK_STATE. The content of that file after exit code 0 is the state for the next run. A Singer tap gets `{}`
 * before its first run, because taps expect an object, and returns its state in STATE messages.
 */
export async function startCommand(
  input: RunInput,
  source: Extract<Source, { type: 'command' }>,
): Promise<Run> {
  const directory = resolve(input.workflowsDirectory, source.directory);
  const environment: Record<string, string> = {
    ...cleanEnvironment(input.environment, input.runAs),
    ...fillSecrets(source.env, input),
  };
  const config = source.config === null ? undefined : JSON.stringify(fillSecrets(source.config, input));
  const [name = '', ...rest] = source.command;
  const singer = source.protocol === 'singer';
  const state = input.state ?? (singer ? '{}' : 'null');
  const child = await startChild({
    argv: [name, ...rest],
    environment,
    runEnvironment: runEnvironment(input),
    files: { state, config },
    directory,
    stdin: `${state}\n`,
    harness: false,
    ...childOptions(input),
  }).catch((error) => explain(error, name, { directory, path: environment.PATH ?? '' }));
  const who = `The command ${name}`;
  if (singer) {
    // The log lines of `readSinger` quote messages from standard output. Secrets in standard output are not masked, so
    // they are masked here.
    const { clean } = createMask(input.secrets);
    return readSinger(child, {
      who,
      source,
      key: input.definition.key,
      mode: input.definition.mode,
      onLog: ({ level, text }) => input.onLog({ level, text: clean(text) }),
    });
  }
  return runOf(child, who, (end) => {
    const left = stateLeft(end.state, state);
    return 'mistake' in left ? failed(left.mistake, end) : { ok: true, state: left.state };
  });
}

/**
 * Throws an error that says why a command could not be started: its directory or program does not exist, or cannot be
 * used. These are checked only now, because looking for a program in all folders of PATH takes longer than the system's
 * own search.
 */
async function explain(
  error: NodeJS.ErrnoException,
  name: string,
  at: { directory: string; path: string },
): Promise<never> {
  await requireDirectory(at.directory);
  const program = await findProgram(name, at);
  if (error.code !== 'ENOENT') throw error;
  throw new Error(
    `The command ${name} cannot be run: the interpreter in the first line of ${program} does not exist`,
  );
}
